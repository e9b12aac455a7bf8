//! Functions that programs may look for but the simulator does not have: most answer NOT_SUPPORTED, once the
//! library is initialised, as a chip without that feature does. A program that resolves symbols when it first
//! calls them would be ended by the loader if one were missing.

use super::{Call, arguments::Argument, entry, handle::Handle, trace::Notes};
use crate::machine::Code;

// The other arguments, whatever they are, stay in the caller's registers and stack: on x86-64 and AArch64 the
// caller cleans up after them.

/// Functions whose first argument says nothing.
macro_rules! stubs {
    ($code:ident: $($name:ident,)*) => {
        $(entry! { fn $name() |_call| { Err(Code::$code) } })*
    };
}

/// Functions that are asked of something, which must be there.
macro_rules! stubs_of {
    ($kind:ty: $($name:ident,)*) => {
        $(entry! { fn $name(of: $kind) |call| { call.lacks(of) } })*
    };
}

/// What a call is asked of.
trait Asked {
    /// Why there is no answer.
    fn answer(self, call: &Call) -> Code;
}

impl Call {
    fn lacks(&self, of: impl Asked) -> Result<(), Code> {
        Err(of.answer(self))
    }
}

/// A device without that feature.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct OfDevice(Handle);

/// A GPU instance without it.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct OfInstance(Handle);

/// A virtual GPU, of which there is none.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct OfVirtual(u32);

impl Argument for OfDevice {
    fn note(&self, name: &'static str, notes: &mut Notes) {
        self.0.note(name, notes);
    }
}

impl Argument for OfInstance {
    fn note(&self, name: &'static str, notes: &mut Notes) {
        self.0.note(name, notes);
    }
}

impl Argument for OfVirtual {}

impl Asked for OfDevice {
    fn answer(self, call: &Call) -> Code {
        call.device(self.0).err().unwrap_or(Code::NOT_SUPPORTED)
    }
}

impl Asked for OfInstance {
    fn answer(self, call: &Call) -> Code {
        let found = call.gpu_of(self.0).and_then(|gpu| self.0.gi_in(&gpu.board, &gpu.state));
        found.err().unwrap_or(Code::NOT_SUPPORTED)
    }
}

impl Asked for OfVirtual {
    fn answer(self, _call: &Call) -> Code {
        if self.0 == 0 { Code::INVALID_ARGUMENT } else { Code::NOT_FOUND }
    }
}

// Of what a node has none, no argument is valid.
stubs! { INVALID_ARGUMENT:
    nvmlGetExcludedDeviceInfoByIndex, nvmlUnitGetDevices, nvmlUnitGetFanSpeedInfo, nvmlUnitGetHandleByIndex,
    nvmlUnitGetLedState, nvmlUnitGetPsuInfo, nvmlUnitGetTemperature, nvmlUnitGetUnitInfo, nvmlUnitSetLedState,
    nvmlVgpuTypeGetBAR1Info, nvmlVgpuTypeGetCapabilities, nvmlVgpuTypeGetClass, nvmlVgpuTypeGetDeviceID,
    nvmlVgpuTypeGetFbReservation, nvmlVgpuTypeGetFrameRateLimit, nvmlVgpuTypeGetFramebufferSize,
    nvmlVgpuTypeGetGpuInstanceProfileId, nvmlVgpuTypeGetGspHeapSize, nvmlVgpuTypeGetLicense,
    nvmlVgpuTypeGetMaxInstancesPerVm, nvmlVgpuTypeGetName, nvmlVgpuTypeGetNumDisplayHeads,
    nvmlVgpuTypeGetResolution,
}

stubs! { NOT_SUPPORTED:
    nvmlDeviceDiscoverGpus, nvmlDeviceModifyDrainState, nvmlDeviceQueryDrainState, nvmlDeviceRemoveGpu,
    nvmlDeviceRemoveGpu_v2, nvmlEventSetGetContextCount_v1, nvmlEventSetGetContextData_v1,
    nvmlEventSetGetContextInfo_v1, nvmlEventSetGetGpuOperationalEventContextLegacyXid_v1,
    nvmlEventSetRegisterGpuOperationalEvents_v1, nvmlEventSetWait_v3, nvmlGetVgpuCompatibility,
    nvmlGetVgpuDriverCapabilities, nvmlGetVgpuVersion, nvmlSetVgpuVersion, nvmlSystemEventSetCreate,
    nvmlSystemEventSetFree, nvmlSystemEventSetWait, nvmlSystemGetCPER_v1,
    nvmlSystemGetConfComputeCapabilities, nvmlSystemGetConfComputeGpusReadyState,
    nvmlSystemGetConfComputeKeyRotationThresholdInfo, nvmlSystemGetConfComputeSettings,
    nvmlSystemGetConfComputeState, nvmlSystemGetNvlinkBwMode, nvmlSystemRegisterEvents,
    nvmlSystemSetConfComputeGpusReadyState, nvmlSystemSetConfComputeKeyRotationThresholdInfo,
    nvmlSystemSetNvlinkBwMode, nvmlVgpuTypeGetMaxInstancesPerGpuInstance,
}

stubs_of! { OfVirtual:
    nvmlVgpuInstanceClearAccountingPids, nvmlVgpuInstanceGetAccountingMode, nvmlVgpuInstanceGetAccountingPids,
    nvmlVgpuInstanceGetAccountingStats, nvmlVgpuInstanceGetEccMode, nvmlVgpuInstanceGetEncoderCapacity,
    nvmlVgpuInstanceGetEncoderSessions, nvmlVgpuInstanceGetEncoderStats, nvmlVgpuInstanceGetFBCSessions,
    nvmlVgpuInstanceGetFBCStats, nvmlVgpuInstanceGetFbUsage, nvmlVgpuInstanceGetFrameRateLimit,
    nvmlVgpuInstanceGetGpuInstanceId, nvmlVgpuInstanceGetGpuPciId, nvmlVgpuInstanceGetLicenseInfo,
    nvmlVgpuInstanceGetLicenseInfo_v2, nvmlVgpuInstanceGetLicenseStatus, nvmlVgpuInstanceGetMdevUUID,
    nvmlVgpuInstanceGetMetadata, nvmlVgpuInstanceGetPlacementId, nvmlVgpuInstanceGetRuntimeStateSize,
    nvmlVgpuInstanceGetType, nvmlVgpuInstanceGetUUID, nvmlVgpuInstanceGetVmDriverVersion,
    nvmlVgpuInstanceGetVmID, nvmlVgpuInstanceSetEncoderCapacity,
}

stubs_of! { OfInstance:
    nvmlGpuInstanceGetActiveVgpus, nvmlGpuInstanceGetCreatableVgpus, nvmlGpuInstanceGetVgpuHeterogeneousMode,
    nvmlGpuInstanceGetVgpuSchedulerLog, nvmlGpuInstanceGetVgpuSchedulerLog_v2,
    nvmlGpuInstanceGetVgpuSchedulerState, nvmlGpuInstanceGetVgpuSchedulerState_v2,
    nvmlGpuInstanceGetVgpuTypeCreatablePlacements, nvmlGpuInstanceSetVgpuHeterogeneousMode,
    nvmlGpuInstanceSetVgpuSchedulerState, nvmlGpuInstanceSetVgpuSchedulerState_v2,
}

stubs_of! { OfDevice:
    nvmlDeviceClearCpuAffinity, nvmlDeviceClearFieldValues, nvmlDeviceFreezeNvLinkUtilizationCounter,
    nvmlDeviceGetAPIRestriction, nvmlDeviceGetActiveVgpus, nvmlDeviceGetAdaptiveClockInfoStatus,
    nvmlDeviceGetAdaptiveTgpModeInfo_v1, nvmlDeviceGetAddressingMode, nvmlDeviceGetAutoBoostedClocksEnabled,
    nvmlDeviceGetBBXTimeData_v1, nvmlDeviceGetBankRemapperStatus_v1, nvmlDeviceGetBoardPartNumber,
    nvmlDeviceGetBridgeChipInfo, nvmlDeviceGetC2cModeInfoV, nvmlDeviceGetCapabilities,
    nvmlDeviceGetClkMonStatus, nvmlDeviceGetClockOffsets, nvmlDeviceGetConfComputeGpuAttestationReport,
    nvmlDeviceGetConfComputeGpuCertificate, nvmlDeviceGetConfComputeMemSizeInfo,
    nvmlDeviceGetConfComputeProtectedMemoryUsage, nvmlDeviceGetCoolerInfo, nvmlDeviceGetCreatableVgpus,
    nvmlDeviceGetCurrentClockFreqs, nvmlDeviceGetDetailedEccErrors, nvmlDeviceGetDramEncryptionMode,
    nvmlDeviceGetDriverModel, nvmlDeviceGetDriverModel_v2, nvmlDeviceGetGpcClkMinMaxVfOffset,
    nvmlDeviceGetGpcClkVfOffset, nvmlDeviceGetGpuFabricInfo_v4, nvmlDeviceGetGpuOperationMode, nvmlDeviceGetGridLicensableFeatures,
    nvmlDeviceGetGridLicensableFeatures_v2, nvmlDeviceGetGridLicensableFeatures_v3,
    nvmlDeviceGetGridLicensableFeatures_v4, nvmlDeviceGetHostVgpuMode, nvmlDeviceGetHostname_v1,
    nvmlDeviceGetInforomConfigurationChecksum, nvmlDeviceGetInforomImageVersion, nvmlDeviceGetInforomVersion,
    nvmlDeviceGetIrqNum, nvmlDeviceGetLastBBXFlushTime, nvmlDeviceGetMarginTemperature,
    nvmlDeviceGetMemClkMinMaxVfOffset, nvmlDeviceGetMemClkVfOffset, nvmlDeviceGetMemoryLimits_v1,
    nvmlDeviceGetMinMaxFanSpeed, nvmlDeviceGetModuleId, nvmlDeviceGetNumaNodeId, nvmlDeviceGetNvLinkInfo,
    nvmlDeviceGetNvLinkTelemetrySamples_v1, nvmlDeviceGetNvLinkUtilizationControl,
    nvmlDeviceGetNvLinkUtilizationCounter, nvmlDeviceGetNvlinkBwMode, nvmlDeviceGetNvlinkSupportedBwModes,
    nvmlDeviceGetPdi, nvmlDeviceGetPerformanceModes, nvmlDeviceGetPgpuMetadataString,
    nvmlDeviceGetPlatformInfo, nvmlDeviceGetPowerMizerMode_v1, nvmlDeviceGetRepairStatus,
    nvmlDeviceGetRunningProcessDetailList, nvmlDeviceGetSramUniqueUncorrectedEccErrorCounts,
    nvmlDeviceGetSupportedVgpus, nvmlDeviceGetTemperatureThreshold, nvmlDeviceGetUnrepairableMemoryFlag_v1,
    nvmlDeviceGetVgpuCapabilities, nvmlDeviceGetVgpuHeterogeneousMode,
    nvmlDeviceGetVgpuInstancesUtilizationInfo, nvmlDeviceGetVgpuMetadata, nvmlDeviceGetVgpuProcessUtilization,
    nvmlDeviceGetVgpuProcessesUtilizationInfo, nvmlDeviceGetVgpuSchedulerCapabilities,
    nvmlDeviceGetVgpuSchedulerLog, nvmlDeviceGetVgpuSchedulerLog_v2, nvmlDeviceGetVgpuSchedulerState,
    nvmlDeviceGetVgpuSchedulerState_v2, nvmlDeviceGetVgpuTypeCreatablePlacements,
    nvmlDeviceGetVgpuTypeSupportedPlacements, nvmlDeviceGetVgpuUtilization,
    nvmlDevicePerfMetricsGetSamples_v1, nvmlDevicePowerSmoothingActivatePresetProfile,
    nvmlDevicePowerSmoothingSetState, nvmlDevicePowerSmoothingUpdatePresetProfileParam,
    nvmlDeviceReadPRMCounters_v1, nvmlDeviceReadWritePRM_v1, nvmlDeviceResetNvLinkUtilizationCounter,
    nvmlDeviceSetAPIRestriction, nvmlDeviceSetAdaptiveTgpMode_v1, nvmlDeviceSetAutoBoostedClocksEnabled,
    nvmlDeviceSetClockOffsets, nvmlDeviceSetConfComputeUnprotectedMemSize, nvmlDeviceSetCpuAffinity,
    nvmlDeviceSetDefaultAutoBoostedClocksEnabled, nvmlDeviceSetDefaultFanSpeed_v2,
    nvmlDeviceSetDramEncryptionMode, nvmlDeviceSetDriverModel, nvmlDeviceSetFanControlPolicy,
    nvmlDeviceSetFanSpeed_v2, nvmlDeviceSetGpcClkVfOffset, nvmlDeviceSetGpuOperationMode,
    nvmlDeviceSetHostname_v1, nvmlDeviceSetMemClkVfOffset, nvmlDeviceSetMemoryLimits_v1,
    nvmlDeviceSetNvLinkDeviceLowPowerThreshold, nvmlDeviceSetNvLinkUtilizationControl,
    nvmlDeviceSetNvlinkBwMode, nvmlDeviceSetNvlinkBwModeAsync_v1, nvmlDeviceSetPowerMizerMode_v1,
    nvmlDeviceSetRusdSettings_v1, nvmlDeviceSetTemperatureThreshold, nvmlDeviceSetVgpuCapabilities,
    nvmlDeviceSetVgpuHeterogeneousMode, nvmlDeviceSetVgpuSchedulerState, nvmlDeviceSetVgpuSchedulerState_v2,
    nvmlDeviceSetVirtualizationMode, nvmlDeviceValidateInforom, nvmlDeviceVgpuForceGspUnload,
    nvmlDeviceWorkloadPowerProfileClearRequestedProfiles, nvmlDeviceWorkloadPowerProfileGetCurrentProfiles,
    nvmlDeviceWorkloadPowerProfileGetProfilesInfo, nvmlDeviceWorkloadPowerProfileSetRequestedProfiles,
    nvmlDeviceWorkloadPowerProfileUpdateProfiles_v1, nvmlVgpuTypeGetMaxInstances,
}
