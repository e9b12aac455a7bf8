//! Functions that programs may look for but the simulator does not have: they answer NOT_SUPPORTED, once the
//! library is initialised, as a chip without that feature does. A program that resolves symbols when it first
//! calls them would be ended by the loader if one were missing.

use super::enter;
use crate::machine::Code;

macro_rules! unsupported {
    ($($name:ident,)*) => {
        $(
            // The arguments, whatever they are, stay in the caller's registers and stack: on x86-64 and AArch64
            // the caller cleans up after them.
            #[unsafe(no_mangle)]
            pub(crate) extern "C" fn $name() -> u32 {
                enter(stringify!($name), |_| {}, |_| Err(Code::NOT_SUPPORTED))
            }
        )*
    };
}

unsupported! {
    nvmlDeviceClearCpuAffinity, nvmlDeviceClearFieldValues, nvmlDeviceDiscoverGpus,
    nvmlDeviceFreezeNvLinkUtilizationCounter, nvmlDeviceGetAPIRestriction, nvmlDeviceGetActiveVgpus,
    nvmlDeviceGetAdaptiveClockInfoStatus, nvmlDeviceGetAdaptiveTgpModeInfo_v1, nvmlDeviceGetAddressingMode,
    nvmlDeviceGetAutoBoostedClocksEnabled, nvmlDeviceGetBBXTimeData_v1, nvmlDeviceGetBankRemapperStatus_v1,
    nvmlDeviceGetBoardPartNumber, nvmlDeviceGetBridgeChipInfo, nvmlDeviceGetC2cModeInfoV,
    nvmlDeviceGetCapabilities, nvmlDeviceGetClkMonStatus, nvmlDeviceGetClockOffsets,
    nvmlDeviceGetConfComputeGpuAttestationReport, nvmlDeviceGetConfComputeGpuCertificate,
    nvmlDeviceGetConfComputeMemSizeInfo, nvmlDeviceGetConfComputeProtectedMemoryUsage,
    nvmlDeviceGetCoolerInfo, nvmlDeviceGetCreatableVgpus, nvmlDeviceGetCurrentClockFreqs,
    nvmlDeviceGetDetailedEccErrors, nvmlDeviceGetDramEncryptionMode, nvmlDeviceGetDriverModel,
    nvmlDeviceGetDriverModel_v2, nvmlDeviceGetGpcClkMinMaxVfOffset, nvmlDeviceGetGpcClkVfOffset,
    nvmlDeviceGetGpuFabricInfo_v4,
    nvmlDeviceGetGpuOperationMode, nvmlDeviceGetGridLicensableFeatures,
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
    nvmlDeviceGetSupportedVgpus, nvmlDeviceGetTemperatureThreshold,     nvmlDeviceGetUnrepairableMemoryFlag_v1, nvmlDeviceGetVgpuCapabilities,
    nvmlDeviceGetVgpuHeterogeneousMode, nvmlDeviceGetVgpuInstancesUtilizationInfo, nvmlDeviceGetVgpuMetadata,
    nvmlDeviceGetVgpuProcessUtilization, nvmlDeviceGetVgpuProcessesUtilizationInfo,
    nvmlDeviceGetVgpuSchedulerCapabilities, nvmlDeviceGetVgpuSchedulerLog, nvmlDeviceGetVgpuSchedulerLog_v2,
    nvmlDeviceGetVgpuSchedulerState, nvmlDeviceGetVgpuSchedulerState_v2,
    nvmlDeviceGetVgpuTypeCreatablePlacements, nvmlDeviceGetVgpuTypeSupportedPlacements,
    nvmlDeviceGetVgpuUtilization, nvmlDeviceModifyDrainState, nvmlDevicePerfMetricsGetSamples_v1,
    nvmlDevicePowerSmoothingActivatePresetProfile, nvmlDevicePowerSmoothingSetState,
    nvmlDevicePowerSmoothingUpdatePresetProfileParam, nvmlDeviceQueryDrainState, nvmlDeviceReadPRMCounters_v1,
    nvmlDeviceReadWritePRM_v1, nvmlDeviceRemoveGpu, nvmlDeviceRemoveGpu_v2,
    nvmlDeviceResetNvLinkUtilizationCounter, nvmlDeviceSetAPIRestriction, nvmlDeviceSetAdaptiveTgpMode_v1,
    nvmlDeviceSetAutoBoostedClocksEnabled, nvmlDeviceSetClockOffsets,
    nvmlDeviceSetConfComputeUnprotectedMemSize, nvmlDeviceSetCpuAffinity,
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
    nvmlDeviceWorkloadPowerProfileUpdateProfiles_v1, nvmlEventSetGetContextCount_v1,
    nvmlEventSetGetContextData_v1, nvmlEventSetGetContextInfo_v1,
    nvmlEventSetGetGpuOperationalEventContextLegacyXid_v1, nvmlEventSetRegisterGpuOperationalEvents_v1,
    nvmlEventSetWait_v3, nvmlGetExcludedDeviceInfoByIndex, nvmlGetVgpuCompatibility,
    nvmlGetVgpuDriverCapabilities, nvmlGetVgpuVersion, nvmlGpuInstanceGetActiveVgpus,
    nvmlGpuInstanceGetCreatableVgpus, nvmlGpuInstanceGetVgpuHeterogeneousMode,
    nvmlGpuInstanceGetVgpuSchedulerLog, nvmlGpuInstanceGetVgpuSchedulerLog_v2,
    nvmlGpuInstanceGetVgpuSchedulerState, nvmlGpuInstanceGetVgpuSchedulerState_v2,
    nvmlGpuInstanceGetVgpuTypeCreatablePlacements, nvmlGpuInstanceSetVgpuHeterogeneousMode,
    nvmlGpuInstanceSetVgpuSchedulerState, nvmlGpuInstanceSetVgpuSchedulerState_v2, nvmlSetVgpuVersion,
    nvmlSystemEventSetCreate, nvmlSystemEventSetFree, nvmlSystemEventSetWait, nvmlSystemGetCPER_v1,
    nvmlSystemGetConfComputeCapabilities, nvmlSystemGetConfComputeGpusReadyState,
    nvmlSystemGetConfComputeKeyRotationThresholdInfo, nvmlSystemGetConfComputeSettings,
    nvmlSystemGetConfComputeState, nvmlSystemGetNvlinkBwMode,     nvmlSystemRegisterEvents, nvmlSystemSetConfComputeGpusReadyState,
    nvmlSystemSetConfComputeKeyRotationThresholdInfo, nvmlSystemSetNvlinkBwMode, nvmlUnitGetDevices,
    nvmlUnitGetFanSpeedInfo, nvmlUnitGetHandleByIndex, nvmlUnitGetLedState, nvmlUnitGetPsuInfo,
    nvmlUnitGetTemperature, nvmlUnitGetUnitInfo, nvmlUnitSetLedState, nvmlVgpuInstanceClearAccountingPids,
    nvmlVgpuInstanceGetAccountingMode, nvmlVgpuInstanceGetAccountingPids, nvmlVgpuInstanceGetAccountingStats,
    nvmlVgpuInstanceGetEccMode, nvmlVgpuInstanceGetEncoderCapacity, nvmlVgpuInstanceGetEncoderSessions,
    nvmlVgpuInstanceGetEncoderStats, nvmlVgpuInstanceGetFBCSessions, nvmlVgpuInstanceGetFBCStats,
    nvmlVgpuInstanceGetFbUsage, nvmlVgpuInstanceGetFrameRateLimit, nvmlVgpuInstanceGetGpuInstanceId,
    nvmlVgpuInstanceGetGpuPciId, nvmlVgpuInstanceGetLicenseInfo, nvmlVgpuInstanceGetLicenseInfo_v2,
    nvmlVgpuInstanceGetLicenseStatus, nvmlVgpuInstanceGetMdevUUID, nvmlVgpuInstanceGetMetadata,
    nvmlVgpuInstanceGetPlacementId, nvmlVgpuInstanceGetRuntimeStateSize, nvmlVgpuInstanceGetType,
    nvmlVgpuInstanceGetUUID, nvmlVgpuInstanceGetVmDriverVersion, nvmlVgpuInstanceGetVmID,
    nvmlVgpuInstanceSetEncoderCapacity, nvmlVgpuTypeGetBAR1Info, nvmlVgpuTypeGetCapabilities,
    nvmlVgpuTypeGetClass, nvmlVgpuTypeGetDeviceID, nvmlVgpuTypeGetFbReservation,
    nvmlVgpuTypeGetFrameRateLimit, nvmlVgpuTypeGetFramebufferSize, nvmlVgpuTypeGetGpuInstanceProfileId,
    nvmlVgpuTypeGetGspHeapSize, nvmlVgpuTypeGetLicense, nvmlVgpuTypeGetMaxInstances,
    nvmlVgpuTypeGetMaxInstancesPerGpuInstance, nvmlVgpuTypeGetMaxInstancesPerVm, nvmlVgpuTypeGetName,
    nvmlVgpuTypeGetNumDisplayHeads, nvmlVgpuTypeGetResolution,
}
