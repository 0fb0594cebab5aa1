-- text_lines.lua: flow.data.TextLineDataset: the lines of text files as strings, without what ends them.
--
--   local lines = flow.data.TextLineDataset { "a.txt", "b.txt" }
--   local mixed = flow.data.Dataset.from_tensor_slices { "a.txt", "b.txt" }:interleave(flow.data.TextLineDataset, { cycle_length = 2 })
--
-- The lines are read in Lua, by a generator, on the thread that asks for elements. A file is opened when the one before has ended.

local errors = require "flow.errors"
local host = require "flow.host"
local signature = require "flow.signature"
local strings = require "flow.tensor.strings"

local raise = errors.raise

-- TextLineDataset(path) or TextLineDataset { paths }: one file after the other.
signature.takes "filenames, { compression_type: string = '' }"
return signature.guard("flow.data.TextLineDataset", function(filenames, options)
  local what = "TextLineDataset"
  if options.compression_type ~= "" then raise("%s: compression_type is \"\": unpack the file before", what) end
  local paths = type(filenames) == "table" and strings.flat(what, filenames) or { filenames }
  for i, path in ipairs(paths) do paths[i] = require("flow.io").path(path, ("%s: file %d"):format(what, i)) end
  local function lines()
    local next_line, number = nil, 0
    return function()
      while true do
        local line = next_line and next_line()
        if line then return (line:gsub("\r", "")) end      -- as TensorFlow reads lines
        number = number + 1
        if number > #paths then return nil end
        local file, problem = host.io.open(paths[number], "rb")
        if not file then raise("%s: %s cannot be read: %s", what, paths[number], problem) end
        next_line = file:lines()
      end
    end
  end
  return require("flow.data").Dataset.from_generator(lines, { output_signature = { { shape = {}, dtype = "string" } } })
end, signature.pop())
