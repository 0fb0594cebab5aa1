-- experimental.lua: flow.data.experimental: names of tf.data.experimental that scripts and guides use. Those that are stages by now give a
-- function for ds:apply(): ds:apply(flow.data.experimental.assert_cardinality(100)).

local native = require "flow.ffi"
local errors = require "flow.errors"
local signature = require "flow.signature"

local raise, takes = errors.raise, signature.takes

-- Names here -> the methods of data sets that do it.
local STAGES = { assert_cardinality = "assert_cardinality", ignore_errors = "ignore_errors", enumerate_dataset = "enumerate",
  group_by_window = "group_by_window", bucket_by_sequence_length = "bucket_by_sequence_length", scan = "scan", take_while = "take_while",
  unique = "unique", unbatch = "unbatch", rejection_resample = "rejection_resample", snapshot = "snapshot" }

return function(data)
  -- The data set, if it is one.
  local function checked(name, dataset)
    if not data.is(dataset) then raise("flow.data.experimental.%s takes a data set, got %s", name, errors.describe(dataset)) end
    return dataset
  end

  local experimental = signature.module("flow.data.experimental", { AutoShardPolicy = data.AutoShardPolicy, AUTOTUNE = data.AUTOTUNE,
    INFINITE_CARDINALITY = data.INFINITE_CARDINALITY, UNKNOWN_CARDINALITY = data.UNKNOWN_CARDINALITY })

  for name, method in pairs(STAGES) do
    takes("arguments...", true)      -- those of the method
    experimental[name] = function(...)
      local list, count = { ... }, select("#", ...)
      return function(dataset) return checked(name, dataset)[method](dataset, unpack(list, 1, count)) end
    end
  end

  -- The number of elements, or one of the two constants.
  takes "dataset"
  function experimental.cardinality(dataset) return checked("cardinality", dataset):cardinality() end

  -- shuffle(buffer_size) before repeat_(count).
  takes "buffer_size: count, count: integer = -1, seed?"
  function experimental.shuffle_and_repeat(buffer_size, count, seed)
    return function(dataset) return checked("shuffle_and_repeat", dataset):shuffle(buffer_size, { seed = seed }):repeat_(count) end
  end

  -- 0, 1, 2, ... without end, or from start in steps.
  takes "start: numeric = 0, step: numeric = 1, { dtype = 'int64'; }"
  function experimental.Counter(start, step, options) return data.Dataset.counter(start, step, options) end

  -- The only element of a data set.
  takes "dataset"
  function experimental.get_single_element(dataset) return checked("get_single_element", dataset):get_single_element() end

  -- The paths that a pattern, or a list of them, finds, sorted.
  local function list_of_files(pattern)
    local found = {}
    for path in data.Dataset.list_files(pattern, { shuffle = false }):iter() do found[#found + 1] = path end
    return found
  end

  -- What a file's columns are, as TensorFlow infers it: whole numbers that fit are int32; empty fields are 0.
  local function inferred(column)
    if type(column) == "table" then return column end
    local is_small = column.dtype == "int64" and (column.size == 0 or column:abs():max():item() < 2 ^ 31)
    return is_small and column:to("int32") or column
  end

  local CSV = "file_pattern: string|list, batch_size: count, column_names?: list, column_defaults?: list, label_name?: string, "
    .. "select_columns?: list, field_delim: string = ',', header: boolean = true, num_epochs?: count, shuffle: boolean = true, "
    .. "shuffle_buffer_size: count = 10000, shuffle_seed?, { na_value: string = '', num_rows_for_inference?: whole, "
    .. "prefetch_buffer_size: integer = -1, ignore_errors: boolean = false }"
  -- Batches of the columns of files of comma-separated values: { name = values }, and the label where label_name says which column it is;
  -- for ever, if num_epochs says nothing else. Columns are what their fields are, or of the dtypes in column_defaults.
  takes(CSV)
  function experimental.make_csv_dataset(pattern, batch_size, column_names, defaults, label_name, selected, delimiter, header, epochs,
      shuffle, buffer_size, seed, options)
    local what = "flow.data.experimental.make_csv_dataset"
    if options.na_value ~= "" then raise("%s: na_value is \"\": missing fields are empty", what) end
    local files = list_of_files(pattern)
    if #files == 0 then raise("%s: there is no file %s", what, errors.describe(pattern)) end
    local whole, dtypes
    for _, path in ipairs(files) do
      local columns, names = data.load_csv(path, { header = header, columns = selected or not header and column_names or nil,
        dtypes = dtypes, delimiter = delimiter })
      for i, name in ipairs(names) do
        columns[name] = inferred(columns[name])
        local dtype = defaults and defaults[i]
        if type(dtype) == "string" and dtype ~= "string" then columns[name] = columns[name]:to(dtype) end
      end
      if not dtypes then
        dtypes = {}
        for name, column in pairs(columns) do dtypes[name] = type(column) == "table" and "string" or column.dtype end
      end
      local label = label_name and columns[label_name]
      if label_name and label == nil then raise("%s: %s has no column %q, which label_name asks for", what, path, label_name) end
      if label_name then columns[label_name] = nil end
      local part = data.Dataset.from_tensor_slices { columns, label }
      whole = whole and whole:concatenate(part) or part
    end
    if shuffle then whole = whole:shuffle(buffer_size, { seed = seed }) end
    return whole:repeat_(epochs or -1):batch(batch_size, { drop_remainder = epochs == nil }):prefetch(options.prefetch_buffer_size)
  end

  -- A column of texts as its record default says: a dtype, of fields that have to be there, or what stands for an empty field.
  local function read_column(what, path, number, texts, default)
    local required = type(default) == "string" and (default == "string" or native.dtypes[default] ~= nil)
    if not required and native.is_tensor(default) then default = { value = default:reshape({ -1 }):totable()[1], dtype = default.dtype } end
    for i, text in ipairs(texts) do
      if text == "" and required then raise("%s: %s: field %d of record %d is empty, and has no default", what, path, number, i) end
      if text == "" then texts[i] = tostring(type(default) == "table" and default.value or default) end
    end
    local dtype = required and default or type(default) == "table" and default.dtype or type(default) == "number" and "float32" or "string"
    return dtype == "string" and texts or require("flow.tensor.text.string_ops").to_number(texts, dtype)
  end

  local RECORDS = "filenames: string|list, record_defaults: list, compression_type: string = '', buffer_size?, header: boolean = false, "
    .. "field_delim: string = ',', use_quote_delim: boolean = true, na_value: string = '', select_cols?: list, exclude_cols?: list"
  -- The records of files of comma-separated values, one after the other, as values in the order of the columns. record_defaults: for each
  -- column its dtype, or what stands for an empty field: a number, a tensor with one, a text. select_cols: which columns, from 1.
  takes(RECORDS)
  function experimental.CsvDataset(paths, defaults, compression, _, header, delimiter, quotes, na_value, selected, excluded)
    local what = "flow.data.experimental.CsvDataset"
    if compression ~= "" then raise("%s: compression_type is \"\": unpack the file before", what) end
    if not quotes or na_value ~= "" then raise("%s: use_quote_delim is true and na_value \"\"", what) end
    if selected and excluded then raise("%s takes select_cols or exclude_cols, not both", what) end
    local whole, left_out = nil, {}
    for _, number in ipairs(excluded or {}) do left_out[number] = true end
    paths = type(paths) == "table" and paths or { paths }
    errors.check_list(what .. ": filenames", paths)
    errors.check_list(what .. ": record_defaults", defaults)
    for _, path in ipairs(paths) do
      local columns, names = data.load_csv(path, { header = header, dtypes = "string", delimiter = delimiter })
      local list = {}
      for number, name in ipairs(selected or names) do
        if selected then number, name = name, names[name] end
        if name == nil then raise("%s: %s has %d columns, select_cols names %s", what, path, #names, errors.describe(number)) end
        if not left_out[number] then
          local default = defaults[#list + 1]
          if default == nil then raise("%s: record_defaults has %d entries, %s more columns than that", what, #defaults, path) end
          list[#list + 1] = read_column(what, path, number, columns[name], default)
        end
      end
      if #list ~= #defaults then raise("%s: %s has %d columns, record_defaults %d entries", what, path, #list, #defaults) end
      local part = data.Dataset.from_tensor_slices(#list == 1 and list[1] or list)
      whole = whole and whole:concatenate(part) or part
    end
    return whole
  end

  return experimental
end
