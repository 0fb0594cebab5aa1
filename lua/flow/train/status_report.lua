-- status_report.lua: a callback that fit adds if the status is shown (distribute/status.lua): it reports the position, the losses and the
-- speed.
--
-- Fields: _next, the clock time from which the losses may be read again; _mark, { time =, batch =, rows = } of the beginning of the epoch,
-- from which the speed is computed.

local native = require "flow.ffi"
local training = require "flow.train.compile"
local status = require "flow.distribute.status"
local callbacks = require "flow.train.callback"

local C = native.C
local EVERY = 0.5            -- seconds between two reads of the losses, which wait for a device

local StatusReport = callbacks.stock("StatusReport")

function StatusReport:on_train_begin()
  rawset(self, "_next", 0)
  status.begin { state = "training", epoch = 0, epochs = self.params.epochs, steps_per_epoch = self.params.steps }
end

function StatusReport:on_epoch_begin(epoch)
  rawset(self, "_mark", { time = C.flow_clock(), batch = 0, rows = 0 })
  status.say { state = "training", epoch = epoch + 1 }
end

-- Called after each execution; most calls return at once, so that the loop does not wait for the device.
function StatusReport:_after_batch(run)
  local now = C.flow_clock()
  if now < self._next then return end
  rawset(self, "_next", now + EVERY)
  local model, mark = run.model, self._mark
  local values = { step = model._train_steps + run.pending, logs = training.results(model, "train") }
  if mark and run.batch > mark.batch and now > mark.time then
    values.steps_per_second = (run.batch - mark.batch) / (now - mark.time)
    local rows = run.train.source and run.train.source.size or 0
    if rows > 0 then values.samples_per_second = rows * values.steps_per_second end
  end
  status.say(values)
end

function StatusReport:on_test_begin() status.say { state = "validating" } end
function StatusReport:on_test_end() status.say { state = "training" } end

function StatusReport:on_epoch_end(epoch, logs)
  status.say { epoch = epoch + 1, step = self.model._train_steps }
  status.say_point(logs)
end

function StatusReport:on_train_end() status.say { state = "done" } end

return StatusReport
