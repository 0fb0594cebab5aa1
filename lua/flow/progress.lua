-- progress.lua: what fit, evaluate and predict print: Keras' progress bar on a terminal, one plain line an epoch elsewhere.

local native = require "flow.ffi"
local errors = require "flow.errors"
local log = require "flow.log"

local C = native.C
local progress = {}

local Bar = {}
Bar.__index = Bar

-- verbose: 0 silent, 1 a bar on a terminal and a line an epoch elsewhere, 2 a line an epoch, "auto" (the default) is 1.
function progress.verbosity(value)
  if value == 0 or value == false then return 0 end
  if value == 2 then return 2 end
  if value ~= nil and value ~= "auto" and value ~= 1 and value ~= true then
    errors.raise("verbose is 0, 1, 2 or \"auto\", got %s", errors.describe(value))
  end
  return C.flow_terminal_columns() > 0 and 1 or 2
end

-- target: number of batches, or nil when it is not known.
function progress.new(verbose, target)
  local now = C.flow_clock()
  return setmetatable({ verbose = verbose, target = target, started = now, first = nil, drawn = 0, done = 0, rows = 0 }, Bar)
end

-- A value as Keras prints it, 0 included: 0.0000e+00.
function progress.number(value, signed)
  if value ~= value then return "nan" end
  local magnitude = signed and math.abs(value) or value
  return (magnitude > 1e-3 and "%.4f" or "%.4e"):format(value)
end

local function sorted_keys(logs)
  local train, validation = {}, {}
  for key in pairs(logs) do table.insert(key:find("^val_") and validation or train, key) end
  table.sort(train)
  table.sort(validation)
  for _, key in ipairs(validation) do train[#train + 1] = key end
  return train
end

local function values_text(logs, separator, signed)
  local parts = {}
  for _, key in ipairs(sorted_keys(logs)) do parts[#parts + 1] = key .. ": " .. progress.number(logs[key], signed) end
  return table.concat(parts, separator)
end

local function per_step(seconds)
  if seconds >= 1 or seconds == 0 then return ("%.0fs/step"):format(seconds) end
  if seconds >= 1e-3 then return ("%.0fms/step"):format(seconds * 1e3) end
  return ("%.0fus/step"):format(seconds * 1e6)
end

local function clock_text(seconds)
  if seconds > 3600 then return ("%d:%02d:%02d"):format(seconds / 3600, seconds % 3600 / 60, seconds % 60) end
  if seconds > 60 then return ("%d:%02d"):format(seconds / 60, seconds % 60) end
  return ("%ds"):format(seconds)
end

-- Seconds a step, without the first one, which makes the plan.
local function step_time(self, now)
  if self.done == 0 then return 0 end
  if self.first and self.done > 1 then return (now - self.first) / (self.done - 1) end
  return (now - self.started) / self.done
end

local function bar_text(self)
  if not self.target then return ("%7d/Unknown"):format(self.done) end
  local digits = #tostring(self.target)
  local filled = math.min(20, math.floor(20 * self.done / math.max(self.target, 1)))
  local count = ("\27[1m%" .. digits .. "d/%d\27[0m"):format(self.done, self.target)
  return ("%s \27[32m%s\27[0m\27[37m%s\27[0m"):format(count, ("━"):rep(filled), ("━"):rep(20 - filled))
end

local function draw(self, now, logs, final)
  local step = step_time(self, now)
  local time = (final or not self.target) and clock_text(now - self.started) or clock_text(step * (self.target - self.done))
  local text = ("%s \27[1m%s\27[0m %s"):format(bar_text(self), time, per_step(step))
  local seconds = now - self.started
  if self.rows > 0 and seconds > 0 then text = text .. (" - %.0f/s"):format(self.rows / seconds) end
  if logs and next(logs) then text = text .. " - " .. values_text(logs, " - ", true) end
  log.print("%s", "\r\27[K" .. text .. (final and "\n" or ""))
  self.drawn = now
end

-- Whether it draws while the batches run.
function Bar:visible()
  return self.verbose == 1
end

-- Whether enough time has passed to draw again: the loop asks before it gathers numbers.
function Bar:due()
  return self.verbose == 1 and C.flow_clock() - self.drawn >= 0.05
end

-- After `count` more batches with `rows` rows.
function Bar:advance(count, rows)
  if self.done == 0 and count == 1 then self.first = C.flow_clock() end
  self.done = self.done + count
  self.rows = self.rows + (rows or 0)
end

function Bar:draw(logs)
  if self.verbose == 1 then draw(self, C.flow_clock(), logs, false) end
end

function Bar:finish(logs)
  local now = C.flow_clock()
  if self.verbose == 1 then
    self.target = self.target or self.done
    draw(self, now, logs, true)
  elseif self.verbose == 2 then
    local target = self.target or self.done
    local count = ("%" .. #tostring(target) .. "d/%d"):format(self.done, target)
    local text = ("%s - %.0fs - %s"):format(count, now - self.started, per_step(step_time(self, now)))
    if logs and next(logs) then text = text .. " - " .. values_text(logs, " - ", false) end
    log.print("%s", text .. "\n")
  end
end

return progress
