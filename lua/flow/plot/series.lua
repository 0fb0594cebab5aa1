-- series.lua: what a History shows: a panel for each metric, with its validation values beside it; and the panels of flow.plot.lines and
-- flow.plot.histogram.
--
-- A panel is what curves.lua and terminal.lua draw:
--   name      what stands above it; "": nothing
--   curves    { { name =, points = { { x =, value = }, ... } }, ... }, the first one on top; a value may be NaN or infinite, an x may not
--   bars      of a histogram: { { left =, right =, value = a count }, ... }; curves is empty then
--   across, along    the names of the axes; along may be nil
--   step      what an x is called in tooltips
--   is_whole  all x are whole numbers below 2^53: ticks are at whole numbers

local errors = require "flow.errors"
local native = require "flow.ffi"
local scale = require "flow.plot.scale"

local raise = errors.raise
local series = {}

-- The loss is first and the learning rate last, others by name.
local function rank(name)
  return name == "loss" and 0 or name:find("loss$") and 1 or name == "learning_rate" and 3 or 2
end

-- Whether a value has a place on an axis: a number whose distance from any other one is finite, too.
local LARGEST = 1e300
local function has_place(value) return value >= -LARGEST and value <= LARGEST end      -- false for NaN
series.has_place = has_place

-- { name =, points = { { x = the epoch from 1, value = }, ... } }. Values that were not taken in every epoch (validation_freq) bring the
-- epochs in which they were. Raises where a value is not a number.
local function curve(history, name)
  local values, epochs = history.history[name], history.epoch
  local own = rawget(history, "epochs")
  if own and own[name] and #own[name] == #values then epochs = own[name] end
  local points = {}
  for i, value in ipairs(values) do
    if type(value) ~= "number" then raise("history:plot: %s[%d] is %s, expected a number", name, i, errors.describe(value)) end
    points[i] = { x = (epochs and epochs[i] or i - 1) + 1, value = value }
  end
  return { name = name, points = points }
end

-- The panels of a History: { { name =, curves = { curve, ... } }, ... }, never empty. names: the metrics to show, in this order, nil for
-- all: the loss first, other losses, metrics, the learning rate last, each group by name.
function series.panels(history, names)
  if type(history) ~= "table" or type(history.history) ~= "table" then
    errors.raise("history:plot: expected the History that fit returns, got %s", errors.describe(history))
  end
  local given = history.history
  local panels, chosen = {}, {}
  if names ~= nil then
    if type(names) ~= "table" then raise("history:plot: metrics is a list of names, got %s", errors.describe(names)) end
    for _, name in ipairs(names) do
      if not given[name] then raise("history:plot: there is no metric %q%s", tostring(name), errors.suggestion(tostring(name), given)) end
      chosen[#chosen + 1] = name
    end
  else
    for name in pairs(given) do
      if type(name) ~= "string" then raise("history:plot: names of metrics are texts, one is %s", errors.describe(name)) end
      local of = name:match("^val_(.+)$")
      if not (of and given[of]) then chosen[#chosen + 1] = name end
    end
    table.sort(chosen, function(a, b)
      if rank(a) ~= rank(b) then return rank(a) < rank(b) end
      return a < b
    end)
  end
  for i, name in ipairs(chosen) do
    panels[i] = { name = name, curves = { curve(history, name) }, across = "epoch", step = "epoch", is_whole = true }
    if given["val_" .. name] then panels[i].curves[2] = curve(history, "val_" .. name) end
  end
  if #panels == 0 then raise("history:plot: there is nothing to plot: the history is empty") end
  return panels
end

-- The numbers of a list, which is returned itself, or of a tensor of any shape, in order. what, name: the caller and the argument, for
-- messages.
local function numbers_of(what, name, values)
  if native.is_tensor(values) then values = values:reshape { -1 }:totable() end
  if type(values) ~= "table" then errors.raise("%s: %s is a list of numbers or a tensor, got %s", what, name, errors.describe(values)) end
  errors.check_list(("%s: %s"):format(what, name), values)
  for i, value in ipairs(values) do
    if type(value) ~= "number" then errors.raise("%s: %s[%d] is %s, expected a number", what, name, i, errors.describe(value)) end
  end
  return values
end
series.numbers_of = numbers_of

-- Any curves as one panel, in a list: { loss = { 3, 2, 1 }, val_loss = ... }, a list of lists, or one list or tensor. options: x (where the
-- values are; 1, 2, 3 without it), xlabel, ylabel, title, labels (of the curves of a list). Curves with names come by name, each val_ after
-- the one it belongs to. Raises where x has another length than a curve.
function series.lines(what, given, options)
  local named = {}
  if native.is_tensor(given) and given.rank == 1 or type(given) == "table" and type(given[1]) == "number" then given = { given } end
  if native.is_tensor(given) or type(given) ~= "table" then
    errors.raise("%s: curves are { name = values, ... } or a list of values, got %s", what, errors.describe(given))
  end
  for key, values in pairs(given) do
    local label = options.labels and type(key) == "number" and options.labels[key]
    named[#named + 1] = { key = key, name = label and tostring(label) or type(key) == "number" and "curve " .. key or tostring(key),
                          values = values }
  end
  table.sort(named, function(a, b)
    if type(a.key) ~= type(b.key) then return type(a.key) == "number" end
    if type(a.key) == "number" then return a.key < b.key end
    local left, right = a.key:gsub("^val_", ""), b.key:gsub("^val_", "")
    if left ~= right then return left < right end
    return #a.key < #b.key
  end)
  local x = options.x ~= nil and numbers_of(what, "x", options.x) or nil
  for i, place in ipairs(x or {}) do
    if not has_place(place) then errors.raise("%s: x[%d] is %s, expected a finite number", what, i, series.value_text(place)) end
  end
  local panel = { name = options.title or "", curves = {}, across = options.xlabel or "", along = options.ylabel,
                  step = options.xlabel or "x", is_whole = true }
  for i, each in ipairs(named) do
    local values, points = numbers_of(what, each.name, each.values), {}
    if x and #x ~= #values then errors.raise("%s: %s has %d values, x has %d", what, each.name, #values, #x) end
    for k, value in ipairs(values) do
      points[k] = { x = x and x[k] or k, value = value }
      panel.is_whole = panel.is_whole and points[k].x % 1 == 0 and math.abs(points[k].x) < 2 ^ 53
    end
    panel.curves[i] = { name = each.name, points = points }
  end
  if #panel.curves == 0 then errors.raise("%s: there is nothing to plot: no curve was given", what) end
  return { panel }
end

-- How many values are in each of `bins` equal parts between the least and the greatest, as NumPy's histogram has it, as one panel of bars.
-- A value at the edge of two parts is in the right one, the greatest in the last part. The edges are what NumPy computes (low + i * step),
-- and a value goes by them and not by the quotient, which rounding may put on the other side.
function series.histogram(what, given, bins, options)
  local values, low, high = numbers_of(what, "values", given), math.huge, -math.huge
  for _, value in ipairs(values) do
    if has_place(value) then low, high = math.min(low, value), math.max(high, value) end
  end
  if low > high then errors.raise("%s: there is nothing to plot: no finite value was given", what) end
  local room = 0.5
  while low == high do low, high, room = low - room, high + room, room * 2 end      -- of 1e17, 0.5 is lost
  local bars, step = {}, (high - low) / bins
  for i = 1, bins do bars[i] = { left = low + (i - 1) * step, right = i == bins and high or low + i * step, value = 0 } end
  for _, value in ipairs(values) do
    if has_place(value) then
      local at = math.min(math.floor((value - low) / (high - low) * bins) + 1, bins)
      if value < bars[at].left then at = at - 1
      elseif at < bins and value >= bars[at].right then at = at + 1 end
      bars[at].value = bars[at].value + 1
    end
  end
  return { { name = options.title or "", curves = {}, bars = bars, across = options.xlabel or "", along = options.ylabel or "count",
             step = "x" } }
end

-- The axis of what is across a panel. Its ends are first and last themselves, not the next round numbers, so that curves take the whole
-- width.
function series.axis(panel, first, last, count)
  if panel.is_whole then return scale.epochs(first, last, count) end
  local axis = scale.linear(first, last, count)
  local kept = {}
  for _, tick in ipairs(axis.ticks) do
    if tick.value >= first and tick.value <= last or first == last then kept[#kept + 1] = tick end
  end
  if first < last then axis.low, axis.high, axis.ticks = first, last, kept end
  return axis
end

-- Least and greatest place across and finite value of a panel; low, high are nil if there is none. positive: only of values above 0.
function series.ranges(panel, positive)
  local range = {}
  for _, bar in ipairs(panel.bars or {}) do
    range.first, range.last = math.min(range.first or bar.left, bar.left), math.max(range.last or bar.right, bar.right)
    range.low, range.high = positive and 1 or 0, math.max(range.high or 1, bar.value)
  end
  for _, one in ipairs(panel.curves) do
    for _, point in ipairs(one.points) do
      range.first = math.min(range.first or point.x, point.x)
      range.last = math.max(range.last or point.x, point.x)
      if has_place(point.value) and (not positive or point.value > 0) then
        range.low = math.min(range.low or point.value, point.value)
        range.high = math.max(range.high or point.value, point.value)
      end
    end
  end
  return range
end

-- A value in few characters: 0.1234, 12.3, 1.2e-5, nan.
function series.value_text(value)
  if value ~= value then return "nan" end
  if value == math.huge or value == -math.huge then return value > 0 and "inf" or "-inf" end
  return (("%.4g"):format(value):gsub("e([+-])0*(%d)", function(sign, digit) return "e" .. (sign == "-" and "-" or "") .. digit end))
end

return series
