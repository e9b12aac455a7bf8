use super::*;
use crate::{
    fixtures::{gpu, holding, lost, node, nodes, off, plain_gpu},
    layout, plan as planning, target,
};

/// The plan of one entry for all GPUs, drawn.
fn drawn(node: &Node, instances: &str) -> String {
    let text = format!(
        "version: v1\nmig-configs:\n  one:\n  - devices: all\n    {}\n",
        match instances {
            "off" => "mig-enabled: false".to_owned(),
            some => format!("mig-enabled: true\n    mig-devices: {{{some}}}"),
        }
    );
    let file = layout::parse(&text, "t").unwrap();
    let target = target::resolve(file.find("one").unwrap(), node).unwrap();
    plan(&planning::make(node, &target, &planning::Policy::default()).unwrap(), node)
}

#[test]
fn draws_a_plan_to_scale() {
    let mut node = nodes("a100-40gb", 2);
    node.gpus[0] = holding(node.gpus[0].clone(), "1g@0* 1g@1 2g@2 3g@4");
    node.gpus[1] = holding(node.gpus[1].clone(), "1g@0 1g@1 1g@2 1g@3 1g@4 1g@5 1g@6");
    insta::assert_snapshot!(drawn(&node, "1g.5gb: 7"), @r"
        GPU0  A100-SXM4-40GB  0000:07:00.0  MIG on
          now      [1g*][1g ][2g      ][3g                ]
          planned  [1g*][1g ][1g ][1g ][1g ][1g ][1g ]  .
          =  1g.5gb @0:1   keep, in use by pid 4000
          =  1g.5gb @1:1   keep
          -  2g.10gb @2:2  destroy
          -  3g.20gb @4:4  destroy
          +  1g.5gb @2:1   create
          +  1g.5gb @3:1   create
          +  1g.5gb @4:1   create
          +  1g.5gb @5:1   create
          +  1g.5gb @6:1   create
        Plan: 2 kept, 2 destroyed, 5 created on 1 GPU; 1 GPU unchanged; no reset
        ");
}

#[test]
fn draws_modes_and_splits() {
    let node = node(vec![off(gpu("a100-40gb", 0)), holding(gpu("a100-40gb", 1), "3g@4* 2g@2:none 1g+me@0")]);
    insta::assert_snapshot!(drawn(&node, "2c.3g.20gb: 1, 1c.3g.20gb: 1, 3g.20gb: 1"), @r"
        GPU0  A100-SXM4-40GB  0000:07:00.0  MIG off
          now      [                 off                  ]
          planned  [3g                ][3g 2c+1c          ]
          MIG mode off -> on, with a reset of this GPU
          +  3g.20gb @0:4  create
          +  3g.20gb @4:4  create, 2c+1c
        GPU1  A100-SXM4-40GB  0000:0f:00.0  MIG on
          now      [1g ]  .  [2g -    ][3g*               ]
          planned  [3g 2c+1c          ][3g*               ]
          =  3g.20gb @4:4    keep, in use by pid 4004
          -  1g.5gb+me @0:1  destroy
          -  2g.10gb @2:2    destroy
          +  3g.20gb @0:4    create, 2c+1c
        Plan: 1 kept, 2 destroyed, 3 created on 2 GPUs; 1 mode change, 1 reset
        ");
    insta::assert_snapshot!(drawn(&nodes("a30-24gb", 2), "off"), @r"
        GPU0  A30  0000:07:00.0  MIG on
          now          .         .         .         .
          planned  [                 off                  ]
          MIG mode on -> off, with a reset of this GPU
        GPU1  A30  0000:0f:00.0  MIG on
          now          .         .         .         .
          planned  [                 off                  ]
          MIG mode on -> off, with a reset of this GPU
        Plan: 0 kept, 0 destroyed, 0 created on 2 GPUs; 2 mode changes, 2 resets
        ");
}

#[test]
fn draws_every_kind_of_gpu_in_one_width() {
    let mut node = node(vec![
        holding(gpu("a100-40gb", 0), "1g@0* 1g+me@1 1g2@2 3g@4:2c+1c"),
        holding(gpu("a30-24gb", 1), "1g@0 2g+me@2*"),
        holding(gpu("rtx-pro-6000-blackwell-96gb", 2), "1g-me@0 1g+me.all@9"),
        off(gpu("h100-sxm-80gb", 3)),
        plain_gpu(4),
        gpu("a100-40gb", 6),
    ]);
    node.unavailable.push(lost(5));
    insta::assert_snapshot!(status(&node), @r"
        GPU0  A100-SXM4-40GB  0000:07:00.0  MIG on
          [1g* ][1g  ][1g        ][3g 2c+1c              ]
          1g.5gb @0:1     GI 1  in use by pid 4000, MIG-0-0-0
          1g.5gb+me @1:1  GI 2  MIG-0-1-0
          1g.10gb @2:2    GI 3  MIG-0-2-0
          3g.20gb @4:4    GI 4  2c+1c, MIG-0-4-0, MIG-0-4-1
        GPU1  A30  0000:0f:00.0  MIG on
          [1g        ]     .      [2g+me*                ]
          1g.6gb @0:1      GI 1  MIG-1-0-0
          2g.12gb+me @2:2  GI 2  in use by pid 4002, MIG-1-2-0
        GPU2  RTX PRO 6000 Blackwell Server Edition  0000:17:00.0  MIG on
          [1g-me     ] .   .   .   .   .   .  [1g+me.all ]
          1g.24gb-me @0:3      GI 1  MIG-2-0-0
          1g.24gb+me.all @9:3  GI 2  MIG-2-9-0
        GPU3  H100 80GB HBM3  0000:1f:00.0  MIG off
          [                     off                      ]
        GPU4  T4  0000:27:00.0  no MIG
        GPU5  ?  unavailable
          has fallen off the bus (gpu-lost)
        GPU6  A100-SXM4-40GB  0000:37:00.0  MIG on
            .     .     .     .     .     .     .     .
        ");
}

#[test]
fn says_that_there_is_nothing_to_do() {
    let text = drawn(&nodes("a100-40gb", 8), "");
    assert_eq!(text, "Plan: nothing to do; 8 GPUs unchanged\n");
}

#[test]
fn every_state_fits_its_picture() {
    let empty = gpu("a100-40gb", 0);
    let ids: Vec<u32> = empty.profiles.iter().map(|p| p.id).collect();
    let geometry = crate::geometry::Geometry::new(&empty.profiles, 580).unwrap();
    for state in geometry.states(&ids) {
        let gpu = crate::fixtures::with_placed(empty.clone(), &state);
        let node = node(vec![gpu]);
        let text = status(&node);
        let bar = text.lines().nth(1).unwrap();
        assert!(bar.len() <= 42, "{bar}");
        assert_eq!(bar.matches('[').count(), state.len(), "{bar}");
        for placed in &state {
            let at = 2 + 5 * placed.placement.start as usize;
            assert_eq!(&bar[at..=at], "[", "{bar}");
        }
    }
}
