-- progress.lua: what fit, evaluate and predict print: Keras' progress bar on a terminal, one plain line an epoch elsewhere.
--
-- A bar belongs to one epoch or pass. Fields: target, batches of it or nil; done, those that ran, skipped of them in an earlier process;
-- rows; started, advanced and first, the clock times in seconds of its beginning, of the last batch and of the first one; drawn, when it
-- was drawn last.

local host = require "flow.host"
local native = require "flow.ffi"
local errors = require "flow.errors"
local log = require "flow.log"

local C = native.C
local progress = {}

local Bar = {}
Bar.__index = Bar

-- verbose: 0 silent, 1 a bar on a terminal and a line an epoch elsewhere, 2 a line an epoch. "auto" (the default) is 1, or 0 in a host that
-- would not show it.
function progress.verbosity(value)
  if value == 0 or value == false then return 0 end
  if value == 2 then return 2 end
  if value ~= nil and value ~= "auto" and value ~= 1 and value ~= true then
    errors.raise("verbose is 0, 1, 2 or \"auto\", got %s", errors.describe(value))
  end
  if (value == nil or value == "auto") and not log._is_heard() then return 0 end
  return C.flow_terminal_columns() > 0 and 1 or 2
end

-- What the bar is drawn with: a box character, unless the environment says that the terminal shows no UTF-8.
local function bar_character()
  for _, name in ipairs { "LC_ALL", "LC_CTYPE", "LANG" } do
    local value = host.getenv(name)
    if value and value ~= "" then return value:lower():find("utf%-?8") and "━" or "=" end
  end
  return "━"
end

-- target: number of batches, or nil when it is not known.
function progress.new(verbose, target)
  local now = C.flow_clock()
  return setmetatable({ verbose = verbose, target = target, started = now, advanced = now, first = nil, drawn = 0, done = 0, skipped = 0,
                       rows = 0, character = bar_character() }, Bar)
end

-- A value as Keras prints it, 0 included: 0.0000e+00.
function progress.number(value, signed)
  if value ~= value then return "nan" end
  local magnitude = signed and math.abs(value) or value
  return (magnitude > 1e-3 and "%.4f" or "%.4e"):format(value)
end

-- The names in logs, sorted, those of validation last; keys that are not texts are left out.
local function sorted_keys(logs)
  local train, validation = {}, {}
  for key in pairs(logs) do
    if type(key) == "string" then table.insert(key:find("^val_") and validation or train, key) end
  end
  table.sort(train)
  table.sort(validation)
  for _, key in ipairs(validation) do train[#train + 1] = key end
  return train
end

-- { "loss: 0.5000", ... } in the order in which they are shown.
local function value_texts(logs, signed)
  local parts = {}
  for i, key in ipairs(logs and sorted_keys(logs) or {}) do
    local value = logs[key]      -- what a callback added to the logs may be anything
    if native.is_tensor(value) and value.size == 1 then value = value:item() end
    if type(value) == "number" then value = progress.number(value, signed)
    elseif type(value) ~= "string" then value = errors.describe(value) end
    parts[i] = key .. ": " .. value
  end
  return parts
end

-- As Keras writes it: "12ms/step".
local function per_step(seconds)
  if seconds >= 1 or seconds == 0 then return ("%.0fs/step"):format(seconds) end
  if seconds >= 1e-3 then return ("%.0fms/step"):format(seconds * 1e3) end
  return ("%.0fus/step"):format(seconds * 1e6)
end

-- "5s", "1:05", "1:00:05".
local function clock_text(seconds)
  if seconds > 3600 then return ("%d:%02d:%02d"):format(seconds / 3600, seconds % 3600 / 60, seconds % 60) end
  if seconds > 60 then return ("%d:%02d"):format(seconds / 60, seconds % 60) end
  return ("%ds"):format(seconds)
end

-- Seconds a step, without the first one, which makes the plan.
local function step_time(self, now)
  local done = self.done - self.skipped
  if done == 0 then return 0 end
  if self.first and done > 1 then return (now - self.first) / (done - 1) end
  return (now - self.started) / done
end

---- the line ------------------------------------------------------------------------------------------------------------------------

-- " 12/100", bold; "12/Unknown" where the number of batches is not known.
local function count_text(self)
  if not self.target then return ("%7d/Unknown"):format(self.done) end
  return ("\27[1m%" .. #tostring(self.target) .. "d/%d\27[0m"):format(self.done, self.target)
end

-- The bar, `cells` characters wide: green as far as it is done, grey after that.
local function bar_text(self, cells)
  local filled = math.min(cells, math.floor(cells * self.done / math.max(self.target, 1)))
  return ("\27[32m%s\27[0m\27[37m%s\27[0m"):format(self.character:rep(filled), self.character:rep(cells - filled))
end

-- The columns that a text takes: colours take none, a character of UTF-8 takes one.
local function width_of(text)
  return select(2, text:gsub("\27%[[%d;]*%a", ""):gsub("[^\128-\191]", ""))
end

-- The forms of the line's head, each shorter than the one before: the bar shrinks, then rate, time per step and bar are left out.
local FORMS = {
  { bar = 20, step = true, rate = true }, { bar = 10, step = true, rate = true }, { bar = 10, step = true }, { bar = 10 }, {},
}

-- What stands before the values: count, bar, time (elapsed at the end or without a target, else what is left), time of a step, rows a
-- second.
local function head_text(self, form, now, final)
  local step, seconds = step_time(self, now), now - self.started
  local training = self.advanced - self.started      -- without validation
  local text = count_text(self)
  if form.bar and self.target then text = text .. " " .. bar_text(self, form.bar) end
  text = text .. (" \27[1m%s\27[0m"):format(clock_text((final or not self.target) and seconds or step * (self.target - self.done)))
  if form.step then text = text .. " " .. per_step(step) end
  if form.rate and self.rows > 0 and training > 0 then text = text .. (" - %.0f/s"):format(self.rows / training) end
  return text
end

-- The line in at most `columns` columns. What does not fit even after the shortest head is left out; at the end of the epoch, when
-- the numbers stay to be read, it goes to separate lines.
local function fitted(self, columns, now, logs, final)
  local values = value_texts(logs, true)
  local tail, head = table.concat(values, " - "), nil
  if tail ~= "" then tail = " - " .. tail end
  for _, form in ipairs(FORMS) do
    head = head_text(self, form, now, final)
    if width_of(head .. tail) <= columns then return head .. tail end
  end
  local lines, line = {}, head
  for _, value in ipairs(values) do
    if width_of(line .. " - " .. value) <= columns then
      line = line .. " - " .. value
    elseif final then
      lines[#lines + 1] = line
      line = "    " .. value
    else
      break
    end
  end
  lines[#lines + 1] = line
  return table.concat(lines, "\n")
end

-- Draws the line over the one before.
local function draw(self, now, logs, final)
  local columns = C.flow_terminal_columns()      -- at each time: windows change
  local text = fitted(self, columns > 0 and columns - 1 or math.huge, now, logs, final)
  log.print("%s", "\r\27[K" .. text .. (final and "\n" or ""))
  self.drawn = now
end

-- Whether the bar is drawn while the batches run.
function Bar:visible()
  return self.verbose == 1
end

-- Whether enough time has passed to draw again; the loop asks before it reads numbers.
function Bar:due()
  return self.verbose == 1 and C.flow_clock() - self.drawn >= 0.05
end

-- Counts `count` more batches with `rows` rows.
function Bar:advance(count, rows)
  self.advanced = C.flow_clock()
  if self.done == self.skipped and count == 1 then self.first = self.advanced end
  self.done = self.done + count
  self.rows = self.rows + (rows or 0)
end

-- Batches that ran in an earlier process: counted, not timed.
function Bar:skip(count)
  self.done, self.skipped = self.done + count, self.skipped + count
end

-- Draws the present state if this is a bar on a terminal. logs: a table of values, or nil.
function Bar:draw(logs)
  if self.verbose == 1 then draw(self, C.flow_clock(), logs, false) end
end

-- Draws the last state, or prints the line of an epoch; logs as above.
function Bar:finish(logs)
  local now = C.flow_clock()
  if self.verbose == 1 then
    self.target = self.target or self.done
    draw(self, now, logs, true)
  elseif self.verbose == 2 then
    local target = self.target or self.done
    local count = ("%" .. #tostring(target) .. "d/%d"):format(self.done, target)
    local text = ("%s - %.0fs - %s"):format(count, now - self.started, per_step(step_time(self, now)))
    for _, value in ipairs(value_texts(logs, false)) do text = text .. " - " .. value end
    log.print("%s", text .. "\n")
  end
end

return progress
