-- tables.lua: flow.data.load_csv: the columns of a file of comma-separated values as tensors.
--
--   local columns, names = flow.data.load_csv("people.csv", { columns = { "age", "name" }, dtypes = { age = "int32" } })
--   columns.age            tensor int32 {n}
--   columns.name           list of strings

local native = require "flow.ffi"
local errors = require "flow.errors"
local signature = require "flow.signature"

local C, check, raise = native.C, native.check, errors.raise

local csv_out = native.out("flow_csv")

-- The names of the file's columns: its header; without one those that columns gives, or 1, 2, 3 ..., also if columns is false.
local function names_of(csv, path, header, columns)
  local names = {}
  local count = C.flow_csv_columns(csv)
  if not header and columns and #columns ~= count then
    raise("load_csv: %s has %d columns, columns names %d", path, count, #columns)
  end
  local has_names = header and columns ~= false
  for i = 1, count do names[i] = has_names and native.string(C.flow_csv_name(csv, i - 1)) or columns and columns[i] or i end
  local seen = {}
  for i, name in ipairs(names) do
    if seen[name] then raise("load_csv: %s has two columns %q: %d and %d", path, tostring(name), seen[name], i) end
    seen[name] = i
  end
  return names, seen
end

-- A column, counted from 1, as a list of strings.
local function strings(csv, index)
  local list = {}
  for row = 1, C.flow_csv_rows(csv) do list[row] = native.string(C.flow_csv_text(csv, index - 1, row - 1)) end
  return list
end

-- The columns `list`, numbers from 1, as tensors of their dtypes; nil: what the fields of a column are. "string", or fields that
-- are texts: a list of strings. All numbers are read in one go.
local function columns_of(csv, list, dtypes)
  local count, unknown = #list, {}
  local columns, numbers = native.array("int", count), native.array("int", count)
  for i = 1, count do
    if dtypes[i] == nil then
      columns[#unknown] = list[i] - 1
      unknown[#unknown + 1] = i
    end
  end
  check(C.flow_csv_dtypes(csv, columns, #unknown, numbers))
  local found, result, read = {}, {}, {}
  for k, i in ipairs(unknown) do found[i] = numbers[k - 1] end
  for i = 1, count do
    local number = found[i] or dtypes[i] == "string" and -1 or native.dtype(dtypes[i])
    if number >= 0 then
      columns[#read], numbers[#read] = list[i] - 1, number
      read[#read + 1] = i
    end
  end
  local tensors = native.out("flow_tensor", #read)
  check(C.flow_csv_tensors(csv, columns, numbers, #read, tensors))
  for k, i in ipairs(read) do result[i] = native.tensor(tensors[k - 1]) end
  for i = 1, count do result[i] = result[i] or strings(csv, list[i]) end
  return result
end

-- load_csv(path [, { header = true, columns =, dtypes =, delimiter = "," }]) -> { name = tensor or list of strings }, names.
-- columns: the names to load, or, without a header, the names of all; false: 1, 2, 3 ..., whatever a header says.
-- dtypes: one for all or { name = dtype }; "string" keeps text.
-- Without a dtype whole numbers become int64, other numbers float32 (an empty field is NaN), all else strings.
signature.takes "path, { header: boolean = true, columns?, dtypes?, delimiter: string = ',' }"
return signature.guard("flow.data.load_csv", function(path, options)
  local header, columns, dtypes = options.header, options.columns, options.dtypes
  path = require("flow.io").path(path, "load_csv")
  if columns and type(columns) ~= "table" then raise("load_csv: columns is a list of names, got %s", errors.describe(columns)) end
  if dtypes ~= nil and type(dtypes) ~= "string" and type(dtypes) ~= "table" then
    raise("load_csv: dtypes is a dtype or a table of them by name, got %s", errors.describe(dtypes))
  end
  check(C.flow_csv_open(path, options.delimiter, header and 1 or 0, csv_out))
  local csv = native.own(csv_out, C.flow_csv_release)
  local names, places = names_of(csv, path, header, columns)
  for name in pairs(type(dtypes) == "table" and dtypes or {}) do
    if not places[name] then raise("load_csv: %s has no column %q%s", path, tostring(name), errors.suggestion(tostring(name), names)) end
  end
  local wanted, list, asked, result = columns or names, {}, {}, {}
  for i, name in ipairs(wanted) do
    if not places[name] then raise("load_csv: %s has no column %q%s", path, tostring(name), errors.suggestion(tostring(name), names)) end
    list[i], asked[i] = places[name], dtypes
    if type(dtypes) == "table" then asked[i] = dtypes[name] end
  end
  for i, column in ipairs(columns_of(csv, list, asked)) do result[wanted[i]] = column end
  native.close(csv, C.flow_csv_release)
  return result, wanted
end, signature.pop())
