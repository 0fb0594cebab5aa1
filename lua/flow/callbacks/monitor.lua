-- callbacks/monitor.lua: what callbacks share that follow one value of the logs and know when it got better: ModelCheckpoint,
-- EarlyStopping, ReduceLROnPlateau.
--
-- A stock callback that extends Monitor has the fields monitor (a name of the logs), mode and perhaps min_delta, calls _begin_monitoring
-- when training begins, and then asks _current and _is_improvement.

local native = require "flow.ffi"
local errors = require "flow.errors"
local training = require "flow.train.compile"
local log = require "flow.log"

local C = native.C
local Monitor = require("flow.train.callback").stock("Monitor")
require("flow.object").hide(Monitor)

local BETTER_LESS = { "loss", "error", "entropy", "divergence", "hinge" }
local BETTER_MORE = { "accuracy", "precision", "recall", "auc", "iou", "f1_score", "r2_score", "similarity" }

-- Whether the metric should become less ("min") or more ("max"); nil where only its writer knows. A metric may say it itself, in its
-- field direction.
local function direction_of(metric)
  local own = rawget(metric, "direction")
  if own then return own end
  local index = rawget(metric, "index")
  local name = index and native.string(C.flow_metric_name(index)) or ""
  for _, part in ipairs(BETTER_MORE) do
    if name:find(part, 1, true) then return "max" end
  end
  for _, part in ipairs(BETTER_LESS) do
    if name:find(part, 1, true) then return "min" end
  end
end

-- "min" or "max" for mode = "auto". Raises if neither a loss nor the record of the metric says it. what: the callback, for the message.
local function automatic_mode(self, what)
  local name = self.monitor:gsub("^val_", "")
  if name == "loss" then return "min" end
  local compiled = self:_model()._compiled
  for _, entry in ipairs(compiled and training.trackers(self:_model()) or {}) do
    local is_loss = entry.metric == compiled.loss_tracker or entry.key:find("_loss$")
    local direction = entry.key == name and (is_loss and "min" or direction_of(entry.metric))
    if direction then return direction end
  end
  errors.raise("%s: monitor = %q: it is not known whether less or more of it is better: give mode = \"min\" or mode = \"max\"", what,
    self.monitor)
end

-- Decides at the start of training what is better, so that it holds from the first batch on.
function Monitor:_begin_monitoring(what)
  self._less = (self.mode == "auto" and automatic_mode(self, what) or self.mode) == "min"
end

-- Whether value is better than reference by more than min_delta; anything is better than nothing (false).
function Monitor:_is_improvement(value, reference)
  if not reference then return true end
  local delta = math.abs(rawget(self, "min_delta") or 0)
  if self._less then return value + delta < reference end
  return value - delta > reference
end

-- The value in the logs; nil, with a warning, if there is none.
function Monitor:_current(what, logs)
  local value = logs[self.monitor]
  if type(value) == "number" then return value end
  local names = require("flow.names").keys(logs)
  log.warning("%s conditioned on metric `%s` which is not available. Available metrics are: %s", what, self.monitor,
    table.concat(names, ","))
end

return Monitor
