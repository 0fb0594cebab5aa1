-- experimental.lua: flow.data.experimental: names of tf.data.experimental that scripts and guides use. Those that are stages by now give a
-- function for ds:apply(): ds:apply(flow.data.experimental.assert_cardinality(100)).

local errors = require "flow.errors"
local signature = require "flow.signature"

local raise, takes = errors.raise, signature.takes

-- Names here -> the methods of data sets that do it.
local STAGES = { assert_cardinality = "assert_cardinality", ignore_errors = "ignore_errors", enumerate_dataset = "enumerate",
  group_by_window = "group_by_window", bucket_by_sequence_length = "bucket_by_sequence_length", scan = "scan", take_while = "take_while",
  unique = "unique", unbatch = "unbatch", rejection_resample = "rejection_resample", snapshot = "snapshot" }

return function(data)
  local experimental = signature.module("flow.data.experimental", { AutoShardPolicy = data.AutoShardPolicy, AUTOTUNE = data.AUTOTUNE,
    INFINITE_CARDINALITY = data.INFINITE_CARDINALITY, UNKNOWN_CARDINALITY = data.UNKNOWN_CARDINALITY })

  for name, method in pairs(STAGES) do
    takes("arguments...", true)      -- those of the method
    experimental[name] = function(...)
      local list, count = { ... }, select("#", ...)
      return function(dataset) return dataset[method](dataset, unpack(list, 1, count)) end
    end
  end

  -- The number of elements, or one of the two constants.
  takes "dataset"
  function experimental.cardinality(dataset) return dataset:cardinality() end

  -- shuffle(buffer_size) before repeat_(count).
  takes "buffer_size: count, count: integer = -1, seed?"
  function experimental.shuffle_and_repeat(buffer_size, count, seed)
    return function(dataset) return dataset:shuffle(buffer_size, { seed = seed }):repeat_(count) end
  end

  -- 0, 1, 2, ... without end, or from start in steps.
  takes "start: numeric = 0, step: numeric = 1, { dtype = 'int64'; }"
  function experimental.Counter(start, step, options) return data.Dataset.counter(start, step, options) end

  -- The only element of a data set.
  takes "dataset"
  function experimental.get_single_element(dataset) return dataset:get_single_element() end

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

  return experimental
end
