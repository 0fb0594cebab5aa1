-- comparison.lua: flow.equal and flow.not_equal of strings, as tf.equal compares them: byte by byte, shapes are broadcast.

local errors = require "flow.errors"
local strings = require "flow.tensor.strings"
local tensor = require "flow.tensor"

-- The shape that both are broadcast to.
local function joint_shape(what, a, b)
  local shape, rank = {}, math.max(#a, #b)
  for axis = 1, rank do
    local m, n = a[axis - rank + #a] or 1, b[axis - rank + #b] or 1
    if m ~= n and m ~= 1 and n ~= 1 then
      errors.raise("%s: the shapes {%s} and {%s} do not fit: sizes, last to first, must be equal or 1", what, table.concat(a, ", "),
        table.concat(b, ", "))
    end
    shape[axis] = m == 1 and n or m
  end
  return shape
end

-- Of each element of the joint shape, the position of the element that is broadcast to it, from 1.
local function positions(own, shape)
  local list, skipped = { 1 }, #shape - #own
  for axis, size in ipairs(shape) do
    local made, count = {}, axis > skipped and own[axis - skipped] or 1
    for _, position in ipairs(list) do
      for i = 1, size do made[#made + 1] = (position - 1) * count + (count == 1 and 1 or i) end
    end
    list = made
  end
  return list
end

-- A tensor of booleans: whether strings are equal, or (wanted = false) differ. a, b: a string, a tensor of strings, or lists of them.
return function(what, a, b, wanted)
  for _, value in ipairs { a, b } do
    if not strings.are(value) then errors.raise("%s: strings are compared with strings, got %s", what, errors.describe(value)) end
  end
  local first, shape_of_first = strings.flat(what, a)
  local second, shape_of_second = strings.flat(what, b)
  local shape = joint_shape(what, shape_of_first, shape_of_second)
  local left, right, list = positions(shape_of_first, shape), positions(shape_of_second, shape), {}
  for i, position in ipairs(left) do list[i] = (first[position] == second[right[i]]) == wanted end
  if #shape == 0 then return tensor.tensor(list[1]) end
  if #list == 0 then return tensor.zeros(shape, { dtype = "bool" }) end
  return tensor.tensor(list):reshape(shape)
end
