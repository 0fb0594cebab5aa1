-- callbacks/early_stopping.lua: stops training when a value of the logs stops improving.
--
-- Rules are those of keras/src/callbacks/early_stopping.py. best_weights is a list of tensors, copies of the model's weights, or false; it
-- is part of the state that a backup keeps.

local log = require "flow.log"
local Monitor = require "flow.callbacks.monitor"
local callbacks = require "flow.train.callback"
local takes_named = require("flow.signature").takes_named

-- EarlyStopping { patience = 3, restore_best_weights = true }. After training: stopped_epoch and best_epoch (from 0), best, wait.
local EarlyStopping = callbacks.stock("EarlyStopping", Monitor)

-- Sets the state to that before the first epoch.
local function forget(self)
  self.wait, self.stopped_epoch, self.best, self.best_epoch, self.best_weights = 0, 0, false, 0, false
end

-- patience: epochs without a better value before training stops; baseline: wait counts on as long as the value is not better than this;
-- start_from_epoch: epochs before it are not looked at.
takes_named("monitor: text = 'val_loss', min_delta: number = 0, patience: whole = 0, verbose: whole|boolean = 0, "
  .. "mode: 'auto'|'min'|'max' = 'auto', baseline?: number, restore_best_weights: boolean = false, start_from_epoch: whole = 0")
function EarlyStopping:init(given)
  callbacks.keep(self, EarlyStopping, given)
  forget(self)
end

function EarlyStopping:on_train_begin()
  forget(self)
  self:_begin_monitoring("EarlyStopping")
end

-- A list of what get_weights() gave: its tensors are copies already, which further training does not change.
local function copies(weights)
  local list = {}
  for i, weight in ipairs(weights) do list[i] = weight end
  return list
end

-- Notes that an epoch is the best so far.
local function keep(self, epoch)
  self.best_epoch = epoch
  if self.restore_best_weights then self.best_weights = copies(self:_model():get_weights()) end
end

-- wait counts this epoch first and is set back if it was better: so patience = 0 and 1 both stop at the first that is not.
function EarlyStopping:on_epoch_end(epoch, logs)
  local current = self:_current("Early stopping", logs)
  if not current or epoch < self.start_from_epoch then return end
  if self.restore_best_weights and not self.best_weights then keep(self, epoch) end      -- also if its value is NaN, as in Keras
  self.wait = self.wait + 1
  if self:_is_improvement(current, self.best) then
    self.best = current
    keep(self, epoch)
    if not self.baseline or self:_is_improvement(current, self.baseline) then self.wait = 0 end
  elseif self.wait >= self.patience and epoch > 0 then
    self.stopped_epoch = epoch
    self:_model().stop_training = true
  end
end

-- Gives the model its best weights back, if they were kept, also where training ended for another reason.
function EarlyStopping:on_train_end()
  if self.stopped_epoch > 0 and self.verbose > 0 then log.print("Epoch %d: early stopping\n", self.stopped_epoch + 1) end
  if not self.best_weights then return end
  if self.verbose > 0 then
    log.print("Restoring model weights from the end of the best epoch: %d.\n", self.best_epoch + 1)
  end
  self:_model():set_weights(self.best_weights)
end

function EarlyStopping:get_state()
  return { wait = self.wait, stopped_epoch = self.stopped_epoch, best = self.best, best_epoch = self.best_epoch,
           best_weights = self.best_weights }
end

function EarlyStopping:set_state(state)
  for name, value in pairs(state) do self[name] = value end
end

return EarlyStopping
