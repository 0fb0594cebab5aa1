-- series.lua: what a History shows: a panel for each metric, with its validation values beside it.

local errors = require "flow.errors"

local raise = errors.raise
local series = {}

-- The loss stands first and the learning rate last, others by name.
local function rank(name)
  return name == "loss" and 0 or name:find("loss$") and 1 or name == "learning_rate" and 3 or 2
end

local function is_finite(value)
  return value == value and value < math.huge and value > -math.huge
end
series.is_finite = is_finite

-- { name =, points = { { epoch (from 1), value }, ... } }. Values that were not taken in every epoch (validation_freq) bring the
-- epochs in which they were.
local function curve(history, name)
  local values, epochs = history.history[name], history.epoch
  local own = rawget(history, "epochs")
  if own and own[name] and #own[name] == #values then epochs = own[name] end
  local points = {}
  for i, value in ipairs(values) do
    if type(value) ~= "number" then raise("history:plot: %s[%d] is %s, expected a number", name, i, errors.describe(value)) end
    points[i] = { epoch = (epochs[i] or i - 1) + 1, value = value }
  end
  return { name = name, points = points }
end

-- The panels of a History: { { name =, curves = { curve, ... } }, ... }. names: the metrics to show, nil for all.
function series.panels(history, names)
  if type(history) ~= "table" or type(history.history) ~= "table" then
    errors.raise("history:plot: expected the History that fit returns, got %s", errors.describe(history))
  end
  local given = history.history
  local panels, chosen = {}, {}
  if names then
    for _, name in ipairs(names) do
      if not given[name] then raise("history:plot: there is no metric %q%s", tostring(name), errors.suggestion(tostring(name), given)) end
      chosen[#chosen + 1] = name
    end
  else
    for name in pairs(given) do
      local of = name:match("^val_(.+)$")
      if not (of and given[of]) then chosen[#chosen + 1] = name end
    end
    table.sort(chosen, function(a, b)
      if rank(a) ~= rank(b) then return rank(a) < rank(b) end
      return a < b
    end)
  end
  for i, name in ipairs(chosen) do
    panels[i] = { name = name, curves = { curve(history, name) } }
    if given["val_" .. name] then panels[i].curves[2] = curve(history, "val_" .. name) end
  end
  if #panels == 0 then raise("history:plot: there is nothing to plot: the history is empty") end
  return panels
end

-- Least and greatest epoch and finite value of a panel; low, high are nil if there is none. positive: only of values above 0.
function series.ranges(panel, positive)
  local range = {}
  for _, one in ipairs(panel.curves) do
    for _, point in ipairs(one.points) do
      range.first = math.min(range.first or point.epoch, point.epoch)
      range.last = math.max(range.last or point.epoch, point.epoch)
      if is_finite(point.value) and (not positive or point.value > 0) then
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
  if not is_finite(value) then return value > 0 and "inf" or "-inf" end
  return (("%.4g"):format(value):gsub("e([+-])0*(%d)", function(sign, digit) return "e" .. (sign == "-" and "-" or "") .. digit end))
end

return series
