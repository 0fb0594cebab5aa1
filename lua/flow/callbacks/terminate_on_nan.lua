-- callbacks/terminate_on_nan.lua: stops training when the loss is no longer a number.

local errors = require "flow.errors"
local log = require "flow.log"
local python_format = require "flow.callbacks.python_format"
local callbacks = require "flow.train.callback"
local takes_named = require("flow.signature").takes_named

local TerminateOnNaN = callbacks.stock("TerminateOnNaN")

-- raise_error: raises at once, so that no other callback ends its work (a backup stays), instead of ending training in order.
takes_named "raise_error: boolean = false"
function TerminateOnNaN:init(given) callbacks.keep(self, TerminateOnNaN, given) end

-- loss - loss is 0 for every finite number, and NaN for NaN and infinities.
function TerminateOnNaN:on_train_batch_end(batch, logs)
  local loss = logs.loss
  if not loss or loss - loss == 0 then return end
  if self.raise_error then
    errors.raise("NaN or Inf loss encountered at batch %d. Loss value: %s. Terminating training immediately.", batch,
      python_format.repr(loss))
  end
  log.print("Batch %d: Invalid loss, terminating training\n", batch)
  self:_model().stop_training = true
end

return TerminateOnNaN
