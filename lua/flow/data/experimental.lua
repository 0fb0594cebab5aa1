-- experimental.lua: flow.data.experimental: names of tf.data.experimental that scripts and guides use. Those that are stages by now give a
-- function for ds:apply(): ds:apply(flow.data.experimental.assert_cardinality(100)).

local native = require "flow.ffi"
local errors = require "flow.errors"
local signature = require "flow.signature"
local tensor = require "flow.tensor"
local ops = require "flow.tensor.ops"

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

  -- What a file's columns are, as TensorFlow infers it: whole numbers that fit are int32.
  local function inferred(column)
    if type(column) == "table" then return column end
    local is_small = column.dtype == "int64" and (column.size == 0 or column:abs():max():item() < 2 ^ 31)
    return is_small and column:to("int32") or column
  end

  -- Fields that say that a value is missing become empty.
  local function empty_where(texts, na_value)
    for i, text in ipairs(na_value ~= "" and texts or {}) do
      if text == na_value then texts[i] = "" end
    end
  end

  -- Texts as numbers, if all are, with 0 for empty ones; else the texts.
  local function numbers_of(texts)
    local list, is_whole = {}, true
    for i, text in ipairs(texts) do
      local number = text == "" and 0 or tonumber(text)
      if not number then return texts end
      list[i], is_whole = number, is_whole and number % 1 == 0 and not text:find "[.eE]"
    end
    return inferred(tensor.tensor(list, { dtype = is_whole and "int64" or "float32" }))
  end

  -- A column of texts as its record default says: a dtype, of fields that have to be there, or what stands for an empty field, alone or as
  -- the only entry of a list.
  local function read_column(what, path, number, texts, default)
    local required = type(default) == "string" and (default == "string" or native.dtypes[default] ~= nil)
    if not required and native.is_tensor(default) then
      default = { value = default:reshape({ -1 }):totable()[1], dtype = default.dtype }
    elseif type(default) == "table" and default[1] ~= nil then
      default = { value = default[1], dtype = type(default[1]) == "number" and "float32" or "string" }
    end
    for i, text in ipairs(texts) do
      if text == "" and required then raise("%s: %s: field %d of record %d is empty, and has no default", what, path, number, i) end
      if text == "" then texts[i] = tostring(type(default) == "table" and default.value or default) end
    end
    local dtype = required and default or type(default) == "table" and default.dtype or type(default) == "number" and "float32" or "string"
    if dtype == "string" then return texts end
    local is_read, numbers = errors.attempt(require("flow.tensor.text.string_ops").to_number, texts, dtype)
    return is_read and numbers or raise("%s: %s: column %d: %s", what, path, number, (tostring(numbers):gsub("^[^:]*:%d+: ", "")))
  end

  -- What load_csv gives of a file; nil of one with empty fields among its numbers, or with other fields than the options say.
  local function without_gaps(path, options)
    local is_read, results = errors.attempt(function() return { data.load_csv(path, options) } end)
    for _, column in pairs(is_read and results[1] or {}) do
      if type(column) == "cdata" and column.dtype == "float32" and ops.any(ops.isnan(column)):item() then return nil end
    end
    if is_read then return unpack(results) end
  end

  -- The columns of a file for make_csv_dataset, by name, and their names in order. dtypes: of the files before, or nil.
  local function columns_of(what, path, given, dtypes)
    local defaults, wanted = given.column_defaults, given.select_columns
    local options = { header = given.header, columns = given.column_names, delimiter = given.field_delim,
      dtypes = dtypes and dtypes.by_place or nil }
    if given.column_names and given.header then options.columns = false end      -- what the header says is not read
    local as_texts, columns, names = defaults or given.na_value ~= "", nil, nil      -- what stands for missing fields is known here
    if not as_texts then columns, names = without_gaps(path, options) end
    if not columns then
      as_texts, options.dtypes = true, "string"
      columns, names = data.load_csv(path, options)
    end
    local named = given.column_names or names
    if #named ~= #names then raise("%s: %s has %d columns, column_names names %d", what, path, #names, #named) end
    local by_name, list, places = {}, {}, {}
    for i, name in ipairs(named) do places[name] = i end
    for k, name in ipairs(wanted or named) do
      if type(name) == "number" then name = named[name] end
      local i = places[name]
      if not i then
        raise("%s: %s has no column %s%s", what, path, tostring((wanted or named)[k]), errors.suggestion(tostring(name), named))
      end
      local column = columns[names[i]]
      if as_texts then empty_where(column, given.na_value) end
      if defaults then
        local default = defaults[k]
        if default == nil then
          raise("%s: column_defaults has %d entries for %d columns", what, table.maxn(defaults), #(wanted or named))
        end
        column = read_column(what, path, i, column, default)
      elseif as_texts then
        local dtype = dtypes and dtypes[name]
        if not dtype then column = numbers_of(column)
        elseif dtype ~= "string" then column = read_column(what, path, i, column, tensor.zeros({}, { dtype = dtype })) end
      else column = inferred(column) end
      by_name[name], list[k] = column, name
    end
    return by_name, list, names
  end

  local CSV = "file_pattern: string|list, batch_size: count, column_names?: list, column_defaults?: list, label_name?: string, "
    .. "select_columns?: list, field_delim: string = ',', header: boolean = true, num_epochs?: count, shuffle: boolean = true, "
    .. "shuffle_buffer_size: count = 10000, shuffle_seed?, { na_value: string = '', num_rows_for_inference?: whole, "
    .. "prefetch_buffer_size: integer = -1, ignore_errors: boolean = false }"
  -- Batches of the columns of files of comma-separated values: { name = values }, and the label where label_name says which column it is;
  -- for ever, if num_epochs says nothing else. Columns are what their fields are, or as column_defaults says, which has for each column its
  -- dtype, or the value of a field that is empty or na_value. column_names names the columns, in place of a header; select_columns has the
  -- names or positions of those to read.
  signature.takes_named(CSV)
  function experimental.make_csv_dataset(given)
    local what, label_name, epochs = "flow.data.experimental.make_csv_dataset", given.label_name, given.num_epochs
    local files = list_of_files(given.file_pattern)
    if #files == 0 then raise("%s: there is no file %s", what, errors.describe(given.file_pattern)) end
    local whole, dtypes
    for _, path in ipairs(files) do
      local columns, list, names = columns_of(what, path, given, dtypes)
      if not dtypes then
        dtypes = { by_place = {} }
        for _, name in ipairs(list) do dtypes[name] = type(columns[name]) == "table" and "string" or columns[name].dtype end
        for i, name in ipairs(names) do dtypes.by_place[name] = dtypes[(given.column_names or names)[i]] end
      end
      local label = label_name and columns[label_name]
      if label_name and label == nil then raise("%s: %s has no column %q, which label_name asks for", what, path, label_name) end
      if label_name then columns[label_name] = nil end
      local part = data.Dataset.from_tensor_slices { columns, label }
      whole = whole and whole:concatenate(part) or part
    end
    if given.shuffle then whole = whole:shuffle(given.shuffle_buffer_size, { seed = given.shuffle_seed }) end
    return whole:repeat_(epochs or -1):batch(given.batch_size, { drop_remainder = epochs == nil }):prefetch(given.prefetch_buffer_size)
  end

  local RECORDS = "filenames: string|list, record_defaults: list, compression_type: string = '', buffer_size?, header: boolean = false, "
    .. "field_delim: string = ',', use_quote_delim: boolean = true, na_value: string = '', select_cols?: list, exclude_cols?: list"
  -- The records of files of comma-separated values, one after the other, as values in the order of the columns. record_defaults: for each
  -- column its dtype, or what stands for an empty field: a number, a tensor with one, a text. select_cols: which columns, from 1.
  takes(RECORDS)
  function experimental.CsvDataset(paths, defaults, compression, _, header, delimiter, quotes, na_value, selected, excluded)
    local what = "flow.data.experimental.CsvDataset"
    if compression ~= "" then raise("%s: compression_type is \"\": unpack the file before", what) end
    if not quotes then raise("%s: use_quote_delim is true", what) end
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
          empty_where(columns[name], na_value)
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
