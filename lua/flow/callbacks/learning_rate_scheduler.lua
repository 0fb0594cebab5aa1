-- callbacks/learning_rate_scheduler.lua: a learning rate for every epoch, given by a function.

local errors = require "flow.errors"
local log = require "flow.log"
local python_format = require "flow.callbacks.python_format"
local callbacks = require "flow.train.callback"
local takes_named = require("flow.signature").takes_named

-- LearningRateScheduler(function(epoch, rate) return epoch < 10 and rate or rate * 0.9 end): epochs count from 0.
local LearningRateScheduler = callbacks.stock("LearningRateScheduler")

takes_named "schedule: callable, verbose: whole|boolean = 0"
function LearningRateScheduler:init(given) callbacks.keep(self, LearningRateScheduler, given) end

-- Raises if the function does not give a number, or if the optimizer has a schedule, whose rate cannot be set.
function LearningRateScheduler:on_epoch_begin(epoch)
  local optimizer = self:_model().optimizer
  local rate = self.schedule(epoch, optimizer.learning_rate)
  if type(rate) ~= "number" then
    errors.raise("LearningRateScheduler: schedule(%d, rate) returns a number, got %s", epoch, errors.describe(rate))
  end
  optimizer.learning_rate = rate
  if self.verbose > 0 then
    log.print("\nEpoch %d: LearningRateScheduler setting learning rate to %s.\n", epoch + 1, python_format.repr(rate))
  end
end

-- The History has the rates, as in Keras.
function LearningRateScheduler:on_epoch_end(_, logs)
  logs.learning_rate = self:_model().optimizer.learning_rate
end

return LearningRateScheduler
