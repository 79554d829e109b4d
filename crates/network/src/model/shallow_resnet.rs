//! `ShallowResNet`: a small residual network with named ranges, for trying out collectors and regions.

use types::{ActivationKind, Op};

use super::Prompt;
use crate::config::shallow_resnet::ShallowResnetConfig;
use crate::layer::{ActivationLayer, BatchNorm2d, Conv2d, Conv2dSettings, Linear};
use crate::{Backend, Blueprint, Builder, Module, NetworkError, Ops, Repetition};

const EPSILON: f64 = 1e-5;

/// The network.
#[derive(Debug)]
pub struct ShallowResnet {
    blueprint: Blueprint,
    input: [u64; 2],
    stem: Stem,
    residual: Module,
    blocks: Vec<Block>,
    head: Head,
}

#[derive(Debug)]
struct Stem {
    module: Module,
    conv: Conv2d,
    norm: BatchNorm2d,
    activation: ActivationLayer,
}

#[derive(Debug)]
struct Block {
    module: Module,
    conv1: Conv2d,
    norm1: BatchNorm2d,
    conv2: Conv2d,
    norm2: BatchNorm2d,
    activation: ActivationLayer,
}

#[derive(Debug)]
struct Head {
    module: Module,
    linear: Linear,
}

impl ShallowResnet {
    /// The network of these sizes.
    pub fn new(config: &ShallowResnetConfig) -> Self {
        let ShallowResnetConfig { in_channels, channels, blocks, classes, .. } = *config;
        let same = |inputs: u64, outputs: u64| Conv2dSettings {
            inputs,
            outputs,
            kernel: 3,
            stride: 1,
            padding: 1,
            bias: false,
        };
        let mut builder = Builder::new("ShallowResNet");
        builder.setting("in_channels", in_channels);
        builder.setting("channels", channels);
        builder.setting("blocks", blocks);
        builder.setting("num_classes", classes);
        let stem = builder.module("stem", "Sequential", |builder, module| {
            builder.range("stem");
            Stem {
                module,
                conv: Conv2d::new(builder, "conv", same(in_channels, channels)),
                norm: BatchNorm2d::new(builder, "bn", channels, EPSILON),
                activation: ActivationLayer::new(builder, "relu", ActivationKind::Relu),
            }
        });
        let (residual, blocks) = builder.list("residual", Repetition::Sequential, blocks, |builder, index| {
            builder.module(index.to_string(), "BasicBlock", |builder, module| {
                builder.setting("channels", channels);
                Block {
                    module,
                    conv1: Conv2d::with_range(builder, "conv1", "block.conv1", same(channels, channels)),
                    norm1: BatchNorm2d::new(builder, "bn1", channels, EPSILON),
                    conv2: Conv2d::with_range(builder, "conv2", "block.conv2", same(channels, channels)),
                    norm2: BatchNorm2d::new(builder, "bn2", channels, EPSILON),
                    activation: ActivationLayer::new(builder, "relu", ActivationKind::Relu),
                }
            })
        });
        builder.range_of(residual, "residual");
        let head = builder.module("head", "Sequential", |builder, module| {
            builder.range("head");
            Head { module, linear: Linear::new(builder, "fc", channels, classes, true) }
        });
        Self { blueprint: builder.finish(), input: [in_channels, config.image_size], stem, residual, blocks, head }
    }

    /// Its modules and parameters.
    pub fn blueprint(&self) -> &Blueprint {
        &self.blueprint
    }

    /// Channels and side of the images it takes.
    pub fn input(&self) -> [u64; 2] {
        self.input
    }

    /// Images `[B, C, Y, X]` to class scores `[B, classes]`.
    pub fn forward<B: Backend>(&self, b: &mut B, prompt: &Prompt<B::Tensor>) -> Result<B::Tensor, NetworkError> {
        let x = b.scope(self.stem.module, &[&prompt.input], |b| {
            let x = self.stem.conv.forward(b, &prompt.input)?;
            let x = self.stem.norm.forward(b, &x)?;
            self.stem.activation.forward(b, &x)
        })?;
        let x = b.scope(self.residual, &[&x], |b| {
            let mut x = x.clone();
            for block in &self.blocks {
                x = block.forward(b, &x)?;
            }
            Ok(x)
        })?;
        b.scope(self.head.module, &[&x], |b| {
            let pooled = b.apply(Op::GlobalAveragePool, &[&x])?;
            self.head.linear.forward(b, &pooled)
        })
    }
}

impl Block {
    fn forward<B: Backend>(&self, b: &mut B, x: &B::Tensor) -> Result<B::Tensor, NetworkError> {
        b.scope(self.module, &[x], |b| {
            let inner = self.conv1.forward(b, x)?;
            let inner = self.norm1.forward(b, &inner)?;
            let inner = self.activation.forward(b, &inner)?;
            let inner = self.conv2.forward(b, &inner)?;
            let inner = self.norm2.forward(b, &inner)?;
            let sum = b.add(&inner, x)?;
            self.activation.forward(b, &sum)
        })
    }
}
