-- train/init.lua: flow.train: Checkpoint, CheckpointManager, latest_checkpoint, as tf.train has them; files are safetensors.

local checkpoint = require "flow.train.checkpoint"
local manager = require "flow.train.manager"
local directory = require "flow.train.directory"
local errors = require "flow.errors"

local train = {
  Checkpoint = checkpoint.Checkpoint, CheckpointManager = manager.CheckpointManager, latest_checkpoint = directory.latest_checkpoint,
}

return setmetatable(train, {
  __index = function(_, name) errors.raise("flow.train has no %q%s", tostring(name), errors.suggestion(tostring(name), train)) end,
})
