-- from_end.lua: __index of the lists that scripts get, such as shapes, model.layers and the values of a history: [-1] is the last entry, as
-- of tensors, and [{ 2, -1 }] the entries from the second to the last. A position 0 is an error, since scripts that come from Python mean
-- the first entry by it; one beyond the last is nil.

return function(list, key)
  if type(key) ~= "number" then return type(key) == "table" and require "flow.classes.part_of_list" (list, key) or nil end
  if key > 0 then return nil end
  local count = #list
  if key == 0 and count > 0 then
    require("flow.errors").raise("position 0 of a list with %d %s: positions count from 1; [1] is the first, [-1] the last", count,
      count == 1 and "entry" or "entries")
  end
  return rawget(list, count + 1 + key)
end
