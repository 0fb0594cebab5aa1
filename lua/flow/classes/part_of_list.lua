-- part_of_list.lua: list[{ 2, -1 }] of the lists that scripts get (from_end.lua): the entries from one position to another, which count as
-- those of tensors. list[{ { 2, -1 } }], as a tensor of one axis is indexed, gives the same. The part is of the list's kind: that of a
-- shape is a shape.

local debug = require("flow.host").debug
local raise = require("flow.errors").raise

-- The position that a key of a range names, from 1.
local function position(key, default, count)
  if key == nil then return default end
  if type(key) ~= "number" or key % 1 ~= 0 or key == 0 then
    raise("a part of a list is list[{ from, to }], where positions count from 1 and -1 is the last, got %s",
      require("flow.errors").describe(key))
  end
  return key < 0 and count + 1 + key or key
end

return function(list, key)
  if type(key[1]) == "table" and #key == 1 then key = key[1] end
  local count = #list
  local from, to = position(key[1], 1, count), position(key[2], count, count)
  if key[3] ~= nil then raise("a part of a list is list[{ from, to }], without steps") end
  return setmetatable({ unpack(list, math.min(math.max(from, 1), count + 1), math.min(to, count)) }, debug.getmetatable(list))
end
