-- callbacks/progbar_logger.lua: the progress bar as a callback. fit, evaluate and predict draw one of their own, unless they are given
-- this one: then it is drawn where it is in the list.
--
-- Fields: _bar, of the epoch or pass that runs; _fits, whether a fit is under way, whose validation is silent; _target, batches of a pass,
-- or false until the first pass has told them.

local log = require "flow.log"
local progress = require "flow.train.progress"
local callbacks = require "flow.train.callback"
local takes = require("flow.signature").takes

local ProgbarLogger = callbacks.stock("ProgbarLogger")
ProgbarLogger._draws_bar = true

takes ""
function ProgbarLogger:init()
  self._bar, self._fits, self._target = false, false, false
end

-- A loop that gave none draws a bar, as in Keras.
local function params_of(self) return self.params or { verbose = 1, epochs = 1 } end

-- A new bar, for an epoch or a pass.
local function begin(self)
  local params = params_of(self)
  self._target = self._target or params.steps or false
  self._bar = progress.new(params.verbose, self._target or nil)
end

-- Counts a batch, and draws if enough time has passed since the last time.
local function advance(self, logs)
  if not self._bar then begin(self) end
  self._bar:advance(1)
  if self._bar:due() then self._bar:draw(logs) end
end

-- Draws the last state of the bar. Later epochs have as many batches as this one had.
local function finish(self, logs)
  if not self._bar then begin(self) end
  self._target = self._target or self._bar.done
  self._bar:finish(logs)
end

function ProgbarLogger:on_train_begin() self._fits, self._target = true, false end
function ProgbarLogger:on_train_end() self._fits = false end

function ProgbarLogger:on_epoch_begin(epoch)
  begin(self)
  local params = params_of(self)
  if params.verbose > 0 and params.epochs > 1 then log.print("Epoch %d/%d\n", epoch + 1, params.epochs) end
end
function ProgbarLogger:on_train_batch_end(_, logs) advance(self, logs) end
function ProgbarLogger:on_epoch_end(_, logs) finish(self, logs) end

-- Validation inside fit is silent.
function ProgbarLogger:on_test_begin()
  if not self._fits then
    self._target = false
    begin(self)
  end
end
function ProgbarLogger:on_test_batch_end(_, logs)
  if not self._fits then advance(self, logs) end
end
function ProgbarLogger:on_test_end(logs)
  if not self._fits then finish(self, logs) end
end

function ProgbarLogger:on_predict_begin()
  self._target = false
  begin(self)
end
function ProgbarLogger:on_predict_batch_end() advance(self) end
function ProgbarLogger:on_predict_end() finish(self) end

return ProgbarLogger
