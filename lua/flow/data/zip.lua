-- zip.lua: Dataset.zip: elements of several data sets side by side, in the lists and tables by name that hold the data sets.

local native = require "flow.ffi"
local errors = require "flow.errors"
local names = require "flow.names"
local signature = require "flow.signature"
local structure = require "flow.data.structure"

local raise, C = errors.raise, native.C

return function(Dataset, internal, make, out, with_structure)
  local join

  -- The entry of the structure for a data set, or a list or table of them, which are appended to `found`.
  local function node_of(value, found, depth)
    if internal.is(value) then
      found[#found + 1] = value
      return structure.of_element(value)
    end
    if type(value) ~= "table" or getmetatable(value) or next(value) == nil then
      raise("zip: expected a %s, got %s", depth and "Dataset" or "list of Datasets", errors.describe(value))
    end
    return join(value, found, errors.deeper("zip", depth))
  end

  -- The entry for a list or a table of data sets.
  function join(value, found, depth)
    local parts, keys, is_deep = {}, structure.is_named(value) and {}, false
    if not keys then errors.check_list("zip", value) end
    for key, entry in (keys and names.ordered or ipairs)(value) do
      if keys then
        if type(key) ~= "string" then raise("zip: a table by name has the key %s among them", tostring(key)) end
        keys[#keys + 1] = key
      end
      parts[#parts + 1] = node_of(entry, found, depth)
      is_deep = is_deep or parts[#parts]
    end
    if keys and not is_deep then return keys end
    return { names = keys or nil, parts = parts }
  end

  -- zip { a, b } or zip(a, b): elements side by side; those of several values stand as a list: { x, { image, label } }.
  -- zip { a = x, b = y }: tables with these names. Lists and tables may stand in each other.
  signature.takes("datasets...", true)
  function Dataset.zip(...)
    local value, found = ..., {}
    local count = select("#", ...)
    for i = 1, count do
      if select(i, ...) == nil then raise("Dataset.zip: argument %d is nil: is a name misspelt?", i) end
    end
    if count ~= 1 or internal.is(value) then value = { ... } end
    local node = node_of(value, found)
    local own = (node.names or not node.parts) and { node }
    for _, part in ipairs(own and {} or node.parts) do own = own or part and node.parts end
    local handles = native.out("flow_dataset", #found)
    for i, entry in ipairs(found) do handles[i - 1] = entry._handle end
    return with_structure(make(found, C.flow_dataset_zip, handles, #found, out), own)
  end
end
