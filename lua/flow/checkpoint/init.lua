-- init.lua: flow.train: Checkpoint, CheckpointManager, latest_checkpoint, checkpoints_iterator, SidecarEvaluator, as tf.train has them;
-- files are safetensors.
--
-- The room: flow.train: checkpoints of any objects. May use: tensor, layers, data, distribute, saving.

local checkpoint = require "flow.checkpoint.checkpoint"
local manager = require "flow.checkpoint.manager"
local directory = require "flow.checkpoint.directory"
local reader = require "flow.checkpoint.reader"
local sidecar = require "flow.checkpoint.sidecar_evaluator"
local signature = require "flow.signature"

local train = signature.module "flow.train"
signature.takes("objects?: table, more?: table", true)
train.Checkpoint = checkpoint.Checkpoint
signature.takes "checkpoint, directory, max_to_keep?, { keep_checkpoint_every_n_hours?, checkpoint_name = 'ckpt', checkpoint_interval?, \
  step_counter?, init_fn?, async: boolean = false }"
train.CheckpointManager = manager.CheckpointManager
train.latest_checkpoint = directory.latest_checkpoint
signature.takes "model, data, checkpoint_dir, steps?: count, max_evaluations?: count, callbacks?"
train.SidecarEvaluator = sidecar.SidecarEvaluator
signature.takes "checkpoint_dir: path, min_interval_secs = 0, timeout?: number, timeout_fn?: callable"
train.checkpoints_iterator = require "flow.checkpoint.iterator"
signature.takes "ckpt_dir_or_file: path"
train.list_variables = reader.list_variables
signature.takes "ckpt_dir_or_file: path, name: string"
train.load_variable = reader.load_variable
signature.takes "ckpt_dir_or_file: path"
train.load_checkpoint = reader.load_checkpoint
train.ClusterSpec = require("flow.distribute.cluster").spec

return train
