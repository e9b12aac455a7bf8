//! What is published of a board besides its MIG: limits, clocks, links, fans. By product name, from NVIDIA's
//! product briefs and data sheets. What is not published, or not for certain, is `None`, and functions that ask
//! for it answer NOT_SUPPORTED.

use crate::model::Model;

/// The published figures of a product.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Product {
    /// Default power limit, which is the greatest on these boards, in watts.
    pub power: Option<u32>,
    /// The least power limit that can be set, in watts.
    pub least_power: Option<u32>,
    /// The greatest SM and graphics clock, in MHz.
    pub sm_clock: Option<u32>,
    /// The memory clock, in MHz.
    pub memory_clock: Option<u32>,
    /// Number of NVLinks of the board; 0 for none.
    pub links: u32,
    /// PCIe generation of the board.
    pub pcie: Option<u32>,
    /// Width of the memory bus in bits.
    pub bus_width: Option<u32>,
    /// Fans of its own; boards that are cooled by the chassis have none.
    pub fans: u32,
}

/// (end of the product's name, watts, least watts, SM MHz, memory MHz, links, PCIe, bus, fans); 0 is unknown.
type Row = (&'static str, u32, u32, u32, u32, u32, u32, u32, u32);

const ROWS: &[Row] = &[
    ("A30", 165, 100, 1440, 1215, 4, 4, 3072, 0),
    ("A100-SXM4-40GB", 400, 100, 1410, 1215, 12, 4, 5120, 0),
    ("A100-PCIE-40GB", 250, 150, 1410, 1215, 12, 4, 5120, 0),
    ("A100-SXM4-80GB", 400, 100, 1410, 1593, 12, 4, 5120, 0),
    ("A100 80GB PCIe", 300, 150, 1410, 1512, 12, 4, 5120, 0),
    ("A800-SXM4-40GB", 400, 100, 1410, 1215, 8, 4, 5120, 0),
    ("A800 40GB Active", 240, 0, 0, 0, 8, 4, 5120, 1),
    ("A800-SXM4-80GB", 400, 100, 1410, 1593, 8, 4, 5120, 0),
    ("A800 80GB PCIe", 300, 150, 1410, 1512, 8, 4, 5120, 0),
    ("A800 80GB PCIe LC", 300, 150, 1410, 1512, 8, 4, 5120, 0),
    ("H100 80GB HBM3", 700, 200, 1980, 2619, 18, 5, 5120, 0),
    ("H100 PCIe", 350, 200, 1755, 1593, 12, 5, 5120, 0),
    ("H100 NVL", 400, 200, 0, 2619, 12, 5, 0, 0),
    ("GH200 480GB", 0, 0, 1980, 2619, 0, 0, 0, 0),
    ("GH200 120GB", 0, 0, 1980, 2619, 0, 0, 0, 0),
    ("H800", 700, 200, 1980, 2619, 8, 5, 5120, 0),
    ("H800 PCIe", 350, 200, 1755, 1593, 8, 5, 5120, 0),
    ("H800 NVL", 400, 200, 0, 2619, 8, 5, 0, 0),
    ("H20", 400, 0, 1980, 2619, 18, 5, 0, 0),
    ("H200", 700, 200, 1980, 3201, 18, 5, 6144, 0),
    ("H200 NVL", 600, 200, 0, 3201, 18, 5, 6144, 0),
    ("B200", 1000, 0, 1965, 3996, 18, 0, 8192, 0),
    ("GB200", 1200, 0, 2062, 3996, 18, 0, 8192, 0),
    ("B300 SXM6 AC", 1100, 0, 0, 0, 18, 0, 0, 0),
    ("GB300", 1400, 0, 0, 0, 18, 0, 0, 0),
    ("RTX PRO 6000 Blackwell Server Edition", 600, 0, 0, 0, 0, 5, 512, 0),
    ("RTX PRO 6000 Blackwell Workstation Edition", 600, 0, 0, 0, 0, 5, 512, 2),
    ("RTX PRO 6000 Blackwell Max-Q Workstation Edition", 300, 0, 0, 0, 0, 5, 512, 1),
    ("RTX PRO 5000 Blackwell", 300, 0, 0, 0, 0, 5, 384, 1),
    ("RTX PRO 4500 Blackwell", 200, 0, 0, 0, 0, 5, 256, 1),
    ("RTX PRO 4500 Blackwell Server Edition", 0, 0, 0, 0, 0, 5, 256, 0),
    ("Tesla T4", 70, 60, 1590, 5001, 0, 3, 256, 0),
    ("L40S", 350, 100, 2520, 9001, 0, 4, 384, 0),
];

/// Architectures by NVML_DEVICE_ARCH_*.
const AMPERE: u32 = 7;
const HOPPER: u32 = 9;
const BLACKWELL: u32 = 10;

impl Product {
    /// The figures of a board; all unknown for one that has no row.
    pub fn of(model: &Model) -> Product {
        let name = model.name.as_str();
        let name = name.strip_prefix("NVIDIA ").unwrap_or(name);
        let known = |figure| (figure != 0).then_some(figure);
        let row = ROWS.iter().find(|row| row.0 == name);
        row.map_or_else(Product::default, |row| Product {
            power: known(row.1),
            least_power: known(row.2),
            sm_clock: known(row.3),
            memory_clock: known(row.4),
            links: row.5,
            pcie: known(row.6),
            bus_width: known(row.7),
            fans: row.8,
        })
    }
}

impl Model {
    /// Boards of which bad rows of memory are replaced; older ones retire pages.
    pub fn remaps_rows(&self) -> bool {
        self.architecture >= AMPERE
    }

    /// Hopper and later have GPM.
    pub fn has_gpm(&self) -> bool {
        self.architecture >= HOPPER
    }

    /// High-bandwidth memory has a sensor of its own.
    pub fn has_hbm(&self) -> bool {
        let name = self.name.as_str();
        !["RTX", "L40S", "T4"].iter().any(|gddr| name.contains(gddr))
    }

    /// NVML_NVLINK_VERSION_*: 3.0 of Ampere, 4.0 of Hopper, 5.0 of Blackwell.
    pub fn nvlink_version(&self) -> u32 {
        match self.architecture {
            AMPERE => 4,
            HOPPER => 6,
            BLACKWELL => 7,
            _ => 0,
        }
    }

    /// What one NVLink carries in one direction, in MB/s.
    pub fn nvlink_speed(&self) -> u64 {
        if self.architecture >= BLACKWELL {
            53_125
        } else if self.architecture >= HOPPER {
            26_562
        } else {
            25_000
        }
    }

    /// Boards whose memory checks itself: all of the table; consumer boards do not.
    pub fn has_ecc(&self) -> bool {
        !self.name.as_str().contains("GeForce")
    }
}
