-- tables.lua: flow.data.load_csv: the columns of a file of comma-separated values as tensors.
--
--   local columns, names = flow.data.load_csv("people.csv", { columns = { "age", "name" }, dtypes = { age = "int32" } })
--   columns.age            tensor int32 {n}
--   columns.name           list of strings

local native = require "flow.ffi"
local errors = require "flow.errors"
local signature = require "flow.signature"

local C, check, raise = native.C, native.check, errors.raise

local csv_out, tensor_out = native.out("flow_csv"), native.out("flow_tensor")

-- The names of the file's columns: its header; without one those that columns gives, or 1, 2, 3 ...
local function names_of(csv, path, header, columns)
  local names = {}
  local count = C.flow_csv_columns(csv)
  if not header and columns and #columns ~= count then
    raise("load_csv: %s has %d columns, columns names %d", path, count, #columns)
  end
  for i = 1, count do names[i] = header and native.string(C.flow_csv_name(csv, i - 1)) or columns and columns[i] or i end
  local seen = {}
  for i, name in ipairs(names) do
    if seen[name] then raise("load_csv: %s has two columns %q: %d and %d", path, tostring(name), seen[name], i) end
    seen[name] = i
  end
  return names, seen
end

local function strings(csv, index)
  local list = {}
  for row = 1, C.flow_csv_rows(csv) do list[row] = native.string(C.flow_csv_text(csv, index - 1, row - 1)) end
  return list
end

-- One column: a list of strings, or a tensor of the wanted dtype; without one, what its fields are.
local function column(csv, index, dtype)
  local number
  if dtype == nil then number = C.flow_csv_dtype(csv, index - 1)
  elseif dtype == "string" then number = -1
  else number = native.dtype(dtype) end
  if number < 0 then return strings(csv, index) end
  check(C.flow_csv_tensor(csv, index - 1, number, tensor_out))
  return native.tensor(tensor_out[0])
end

-- load_csv(path [, { header = true, columns =, dtypes =, delimiter = "," }]) -> { name = tensor or list of strings }, names.
-- columns: the names to load, or, without a header, the names of all. dtypes: one for all or { name = dtype }; "string" keeps text.
-- Without a dtype whole numbers become int64, other numbers float32 (an empty field is NaN), all else strings.
signature.takes "path, { header: boolean = true, columns?, dtypes?, delimiter: string = ',' }"
return signature.guard("flow.data.load_csv", function(path, options)
  local header, columns, dtypes = options.header, options.columns, options.dtypes
  path = require("flow.io").path(path, "load_csv")
  if columns ~= nil and type(columns) ~= "table" then raise("load_csv: columns is a list of names, got %s", errors.describe(columns)) end
  if dtypes ~= nil and type(dtypes) ~= "string" and type(dtypes) ~= "table" then
    raise("load_csv: dtypes is a dtype or a table of them by name, got %s", errors.describe(dtypes))
  end
  check(C.flow_csv_open(path, options.delimiter, header and 1 or 0, csv_out))
  local csv = native.own(csv_out, C.flow_csv_release)
  local names, places = names_of(csv, path, header, columns)
  for name in pairs(type(dtypes) == "table" and dtypes or {}) do
    if not places[name] then raise("load_csv: %s has no column %q%s", path, tostring(name), errors.suggestion(tostring(name), names)) end
  end
  local wanted, result = columns or names, {}
  for _, name in ipairs(wanted) do
    if not places[name] then raise("load_csv: %s has no column %q%s", path, tostring(name), errors.suggestion(tostring(name), names)) end
    local dtype = dtypes
    if type(dtypes) == "table" then dtype = dtypes[name] end
    result[name] = column(csv, places[name], dtype)
  end
  native.close(csv, C.flow_csv_release)
  return result, wanted
end, signature.pop())
