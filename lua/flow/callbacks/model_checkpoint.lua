-- callbacks/model_checkpoint.lua: saves the model, or its weights, every epoch or every N batches, or when it is the best so far.
--
-- Fields: best, the best value so far, or false; _epoch, the epoch under way, from 0; _batches, batches since the last save, counted over
-- epochs; _last_batch, the number that the hook of a batch had last in this epoch, from which several batches of one execution are counted.

local errors = require "flow.errors"
local log = require "flow.log"
local object = require "flow.object"
local python_format = require "flow.callbacks.python_format"
local Monitor = require "flow.callbacks.monitor"
local callbacks = require "flow.train.callback"
local signature = require "flow.signature"
local overrides = require("flow.train.model_steps").overrides
local workers = require "flow.distribute.model_workers"
local once = require("flow.distribute.saving").once

local raise = errors.raise
-- ModelCheckpoint("m-{epoch:02d}-{val_loss:.2f}.keras", { save_best_only = true }): the path takes the names of the logs, epoch and,
-- when saving by batches, batch, both counted from 1, with Python's formats.
local ModelCheckpoint = callbacks.stock("ModelCheckpoint", Monitor)

local function ends_with(text, ending)
  return text:sub(-#ending) == ending
end

-- Raises for an ending that does not fit save_weights_only, and for a template that no values could fill.
signature.takes_named("filepath: text, monitor: text = 'val_loss', verbose: whole|boolean = 0, save_best_only: boolean = false, "
  .. "save_weights_only: boolean = false, mode: 'auto'|'min'|'max' = 'auto', save_freq: frequency = 'epoch', "
  .. "initial_value_threshold?: number")
function ModelCheckpoint:init(given)
  callbacks.keep(self, ModelCheckpoint, given)
  local path = self.filepath
  if self.save_weights_only then
    if not ends_with(path, ".weights.h5") and not ends_with(path, ".safetensors") then
      raise("ModelCheckpoint: with save_weights_only = true the path ends in .weights.h5 or .safetensors, got %q", path)
    end
  elseif not ends_with(path, ".keras") then
    raise("ModelCheckpoint: the path ends in .keras (for weights alone: save_weights_only = true and .weights.h5), got %q", path)
  end
  python_format.check("ModelCheckpoint", path, { "epoch", "batch" })
  self.best, self._epoch, self._batches, self._last_batch = self.initial_value_threshold, 0, 0, false
end

-- Raises, before an epoch is spent, where no file could be written; what a template fills in may be the name of a folder.
local function check_path(self)
  if workers.of(self:_model()) then return end      -- writing tells all of them
  local io = require "flow.io"
  local path = io.path(self.filepath, "ModelCheckpoint")
  -- fixed: the path up to the first part with a name in braces, or all of it
  local fixed = path:match("^([^{]*/)[^/]*{") or not path:find("{", 1, true) and path
  if fixed then signature.internal(io).check_writable(fixed:gsub("/$", "/model"), "ModelCheckpoint") end
end

local MAY_ADD = { "train_step", "test_step", "compute_metrics", "get_metrics_result" }

-- Raises, before an epoch is spent, for a name in the path that the logs will not have. Where a script has steps, metrics or callbacks of
-- its own, which may add names, that is known when the logs are there.
local function check_names(self)
  for _, name in ipairs(MAY_ADD) do
    if overrides(self:_model(), name) then return end
  end
  for _, member in ipairs(self._list and self._list.members or {}) do
    if not member._is_stock or object.class_of(member).name == "LambdaCallback" then return end
  end
  local known = { learning_rate = 0.5 }
  for _, name in ipairs(self:_model().metrics_names) do known[name], known["val_" .. name] = 0.5, 0.5 end
  python_format.format("ModelCheckpoint", self.filepath, { epoch = 1, batch = 1 }, known)
end

function ModelCheckpoint:on_train_begin()
  check_path(self)
  check_names(self)
  if self.save_best_only then self:_begin_monitoring("ModelCheckpoint") end
end

function ModelCheckpoint:on_epoch_begin(epoch)
  self._epoch = epoch
end

-- A value as messages show it; none is None.
local function shown(value)
  return value and python_format.format("ModelCheckpoint", "{x:.5f}", {}, { x = value }) or "None"
end

-- Prints a line with the epoch, counted from 1, in front, if verbose asks for it.
local function say(self, epoch, text, ...)
  if self.verbose > 0 then log.print("\nEpoch %d: " .. text .. "\n", epoch + 1, ...) end
end

-- Whether to save now; with save_best_only also notes the value as the best. Without the value in the logs it saves, with a warning, as
-- Keras.
local function should_save(self, epoch, logs, path)
  if not self.save_best_only then
    say(self, epoch, "saving model to %s", path)
    return true
  end
  local current = logs[self.monitor]
  if type(current) ~= "number" then
    log.warning("Can save best model only with %s available.", self.monitor)
    return true
  end
  if not self:_is_improvement(current, self.best) then
    say(self, epoch, "%s did not improve from %s", self.monitor, shown(self.best))
    return false
  end
  say(self, epoch, "%s improved from %s to %s, saving model to %s", self.monitor, shown(self.best), shown(current), path)
  self.best = current
  return true
end

-- Saves if should_save says so. epoch, batch: from 0; batch is nil at the end of an epoch. Of several workers the chief writes; the folder
-- is made.
local function save(self, epoch, batch, logs)
  local io = require "flow.io"
  local counts = { epoch = epoch + 1, batch = batch and logs.batch == nil and batch + 1 or nil }
  local path = io.path(python_format.format("ModelCheckpoint", self.filepath, counts, logs), "ModelCheckpoint")
  if not should_save(self, epoch, logs, path) then return end
  once(workers.of(self:_model()), path, function()
    local folder = path:match("^(.*)/[^/]*$")
    if folder and folder ~= "" then io.makedirs(folder) end
    if self.save_weights_only then self:_model():save_weights(path) else self:_model():save(path) end
  end)
  say(self, epoch, "finished saving model to %s", path)
end

-- Batches are counted over the epochs. The number of a batch grows within an epoch, by steps_per_execution, and begins again in the next
-- one.
function ModelCheckpoint:on_train_batch_end(batch, logs)
  if self.save_freq == "epoch" then return end
  local last = self._last_batch
  self._batches = self._batches + (last and batch > last and batch - last or batch + 1)
  self._last_batch = batch
  if self._batches >= self.save_freq then
    self._batches = 0
    save(self, self._epoch, batch, logs)
  end
end

function ModelCheckpoint:on_epoch_end(epoch, logs)
  if self.save_freq == "epoch" then save(self, epoch, nil, logs) end
end

function ModelCheckpoint:get_state()
  return { best = self.best, epoch = self._epoch, batches = self._batches, last_batch = self._last_batch }
end

function ModelCheckpoint:set_state(state)
  self.best, self._epoch, self._batches, self._last_batch = state.best, state.epoch, state.batches, state.last_batch
end

return ModelCheckpoint
