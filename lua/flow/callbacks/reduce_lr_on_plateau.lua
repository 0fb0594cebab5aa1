-- callbacks/reduce_lr_on_plateau.lua: a smaller learning rate when a value of the logs stops improving.
--
-- Rules are those of keras/src/callbacks/reduce_lr_on_plateau.py. State: best, the best value so far (false: none); wait, epochs without a
-- better one; cooldown_counter, epochs after a reduction in which wait does not count.

local native = require "flow.ffi"
local errors = require "flow.errors"
local log = require "flow.log"
local python_format = require "flow.callbacks.python_format"
local Monitor = require "flow.callbacks.monitor"
local callbacks = require "flow.train.callback"
local takes_named = require("flow.signature").takes_named

local ReduceLROnPlateau = callbacks.stock("ReduceLROnPlateau", Monitor)

-- Sets the state to that before the first epoch.
local function forget(self)
  self.best, self.cooldown_counter, self.wait = false, 0, 0
end

-- The new rate is rate * factor, but not below min_lr. min_delta: by how much a value has to be better to count as better; patience and
-- cooldown are numbers of epochs.
takes_named("monitor: text = 'val_loss', factor: number = 0.1, patience: whole = 10, verbose: whole|boolean = 0, "
  .. "mode: 'auto'|'min'|'max' = 'auto', min_delta: number = 1e-4, cooldown: whole = 0, min_lr: number = 0")
function ReduceLROnPlateau:init(given)
  callbacks.keep(self, ReduceLROnPlateau, given)
  if not (self.factor < 1) then
    errors.raise("ReduceLROnPlateau: factor, what the learning rate is multiplied with, is below 1, got %.14g", self.factor)
  end
  forget(self)
end

function ReduceLROnPlateau:on_train_begin()
  forget(self)
  self:_begin_monitoring("ReduceLROnPlateau")
end

local rounded = native.new("float[1]")      -- min_lr as the optimizer would hold it

-- Reduces the rate; returns whether it was above min_lr, and so is smaller now. The rate is a float32, so it is compared with a min_lr that
-- is rounded to one.
local function reduce(self, epoch)
  local optimizer = self:_model().optimizer
  local before = optimizer.learning_rate
  rounded[0] = self.min_lr
  if before <= rounded[0] then return false end
  local rate = math.max(before * self.factor, self.min_lr)
  optimizer.learning_rate = rate
  if self.verbose > 0 then
    log.print("\nEpoch %d: ReduceLROnPlateau reducing learning rate to %s.\n", epoch + 1, python_format.repr(rate))
  end
  return true
end

-- Adds the rate of this epoch, before a reduction, to the logs.
function ReduceLROnPlateau:on_epoch_end(epoch, logs)
  logs.learning_rate = self:_model().optimizer.learning_rate
  local current = self:_current("Learning rate reduction is", logs)
  if not current then return end
  if self.cooldown_counter > 0 then
    self.cooldown_counter = self.cooldown_counter - 1
    self.wait = 0
  end
  if self:_is_improvement(current, self.best) then
    self.best, self.wait = current, 0
  elseif self.cooldown_counter == 0 then
    self.wait = self.wait + 1
    if self.wait >= self.patience and reduce(self, epoch) then self.cooldown_counter, self.wait = self.cooldown, 0 end
  end
end

function ReduceLROnPlateau:get_state()
  return { best = self.best, cooldown_counter = self.cooldown_counter, wait = self.wait }
end

function ReduceLROnPlateau:set_state(state)
  for name, value in pairs(state) do self[name] = value end
end

return ReduceLROnPlateau
