-- scale.lua: axes with round numbers: from the range of some values to ticks and their labels, linear or logarithmic. An axis is { low =,
-- high = the values at its ends, low < high, ticks = { { value =, label = text }, ... } from low to high, logarithmic = true or nil }. Used
-- by curves.lua, terminal.lua and series.lua; nothing here draws.

local scale = {}

-- 1, 2, 2.5 or 5 times a power of ten, at least `step`: Heckbert's nice numbers ("Nice Numbers for Graph Labels", Graphics Gems). least:
-- the result is a multiple of it (1 for whole numbers), or nil. step: above 0.
local function round_step(step, least)
  local power = 10 ^ math.floor(math.log10(step))
  for _, factor in ipairs { 1, 2, 2.5, 5, 10 } do
    local candidate = factor * power
    if candidate >= step * (1 - 1e-9) and (not least or candidate >= least and candidate % least == 0) then return candidate end
  end
  return 10 * power
end

-- Digits after the point that tell multiples of step apart; nil: more than 6.
local function decimals_of(step)
  for digits = 0, 6 do
    local scaled = step * 10 ^ digits
    if math.abs(scaled - math.floor(scaled + 0.5)) < 1e-6 * scaled then return digits end
  end
end

-- 1e-05 as 1e-5.
local function tidy(text)
  return (text:gsub("e([+-])0*(%d)", function(sign, digit) return "e" .. (sign == "-" and "-" or "") .. digit end))
end

-- The text of a tick: plain where 5 digits after the point and 6 before it are enough, else with an exponent. largest: of the axis, by its
-- size.
local function label(value, step, largest)
  local digits = decimals_of(step)
  if digits and digits <= 5 and largest < 1e6 then return ("%." .. digits .. "f"):format(value == 0 and 0 or value) end
  if value == 0 then return "0" end
  local least = math.floor(math.log10(math.abs(value)) + 1e-9)
  local own = math.max(0, least - math.floor(math.log10(step) + 1e-9) + (step / 10 ^ math.floor(math.log10(step)) % 1 > 0.01 and 1 or 0))
  return tidy(("%." .. math.min(own, 6) .. "e"):format(value))
end

-- Below this range, or this share of the larger end, two ends count as one: their ticks would have numbers that a double cannot tell apart,
-- and a loop over them would not end.
local LEAST_RANGE, LEAST_SHARE = 1e-290, 1e-14

-- An axis over low..high with about `count` ticks: { low =, high =, ticks = { { value =, label = }, ... } }, low and high being
-- ticks themselves. Both are between -1e300 and 1e300, low <= high. whole: ticks are at whole numbers only, and the ends, whole numbers
-- below 2^53, stay unchanged.
function scale.linear(low, high, count, whole)
  if high - low < math.max(LEAST_RANGE, LEAST_SHARE * math.max(math.abs(low), math.abs(high))) then
    local room = whole and 0.5 or math.abs(low) > LEAST_RANGE and math.abs(low) * 0.1 or 1
    if whole then return { low = low - room, high = high + room, ticks = { { value = low, label = ("%d"):format(low) } } } end
    low, high = low - room, high + room
  end
  local step = round_step((high - low) / count, whole and 1)
  local first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
  local axis = { low = first * step, high = last * step, ticks = {} }
  if whole then
    axis.low, axis.high = low, high
    first, last = math.ceil(low / step), math.floor(high / step)
  end
  local largest = math.max(math.abs(first * step), math.abs(last * step))
  for i = first, last do
    local value = i * step
    axis.ticks[#axis.ticks + 1] = { value = value, label = whole and ("%d"):format(value) or label(value, step, largest) }
  end
  return axis
end

-- Ticks at 1 as first number of a range of whole numbers that begins with 1: 1 10 20 30 instead of 10 20 30.
function scale.epochs(low, high, count)
  local axis = scale.linear(low, high, count, true)
  local first, second = axis.ticks[1], axis.ticks[2]
  if first and first.value ~= low then
    local gap = second and second.value - first.value or 1
    if first.value - low < gap * 0.45 then table.remove(axis.ticks, 1) end
    table.insert(axis.ticks, 1, { value = low, label = ("%d"):format(low) })
  end
  return axis
end

-- The same for positive numbers on a logarithmic axis: ticks at powers of ten, or at 1 2 5 where there are few of them. It begins with
-- 1e-300, or above it: 10^-324 is 0.
function scale.logarithmic(low, high, count)
  local first, last = math.max(-300, math.floor(math.log10(low) + 1e-9)), math.ceil(math.log10(high) - 1e-9)
  if last <= first then last = first + 1 end
  local axis = { low = 10 ^ first, high = 10 ^ last, ticks = {}, logarithmic = true }
  local every = math.max(1, math.ceil((last - first) / count))
  local factors = last - first <= 2 and { 1, 2, 5 } or { 1 }
  for power = first, last, every do
    for _, factor in ipairs(factors) do
      local value = factor * 10 ^ power
      if value <= axis.high * (1 + 1e-9) then
        axis.ticks[#axis.ticks + 1] = { value = value, label = tidy((value >= 1e-4 and value < 1e6 and "%.14g" or "%.0e"):format(value)) }
      end
    end
  end
  return axis
end

-- Where a value is between the ends of its axis: 0 at low, 1 at high. What is below a logarithmic axis is at its low end.
function scale.share(axis, value)
  if axis.logarithmic then return math.log(math.max(value / axis.low, 1)) / math.log(axis.high / axis.low) end
  return (value - axis.low) / (axis.high - axis.low)
end

return scale
