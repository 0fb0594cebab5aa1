--- protobuf.lua: takes protobuf messages apart, as a check of what writes them.

-- The fields of a protobuf message: { number =, value = number or text }.
local function fields(message)
  local list, at = {}, 1
  local function varint()
    local value, factor = 0, 1
    repeat
      local byte = message:byte(at)
      value, factor, at = value + byte % 128 * factor, factor * 128, at + 1
    until byte < 128
    return value
  end
  while at <= #message do
    local key = varint()
    local kind, value = key % 8
    if kind == 0 then
      value = varint()
    else
      local length = kind == 1 and 8 or kind == 5 and 4 or varint()
      value, at = message:sub(at, at + length - 1), at + length
    end
    list[#list + 1] = { number = math.floor(key / 8), value = value }
  end
  return list
end

local function field(message, number)
  for _, each in ipairs(fields(message)) do
    if each.number == number then return each.value end
  end
end

return { fields = fields, field = field }
