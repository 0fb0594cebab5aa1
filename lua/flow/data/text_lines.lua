-- text_lines.lua: flow.data.TextLineDataset: the lines of text files as strings, without line ends.
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

local PIECE = 65536            -- bytes that are read at once
local LONGEST = 2 ^ 30         -- bytes of a line; a device or a damaged file may have no line end at all

-- A function that gives the lines of an open file, and nil at its end, where it closes it. file:lines() loses what follows a zero byte, and
-- the end of its line. fail(why) is called if the file cannot be read, and does not return.
local function lines_of(file, fail)
  local text, at = "", 1            -- what was read and not given yet, from `at` on
  local begun, length = {}, 0       -- the pieces of a line whose end was not read yet
  local function whole(rest)
    if length == 0 then return rest end
    begun[#begun + 1] = rest
    local line = table.concat(begun)
    begun, length = {}, 0
    return line
  end
  return function()
    while file do
      local stop = text:find("\n", at, true)
      if stop then
        local rest = text:sub(at, stop - 1)
        at = stop + 1
        return whole(rest)
      end
      local rest, piece, problem = text:sub(at), file:read(PIECE)
      if piece then
        begun[#begun + 1], length, text, at = rest, length + #rest, piece, 1
        if length > LONGEST then fail(("a line has more than %d bytes"):format(LONGEST)) end
      else
        file:close()
        file = nil
        if problem then fail(problem) end
        local line = whole(rest)
        if line ~= "" then return line end
      end
    end
  end
end

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
        local path = paths[number]
        local file, problem = host.io.open(path, "rb")
        if not file then raise("%s: %s cannot be read: %s", what, path, problem:sub(#path + 3)) end
        next_line = lines_of(file, function(why) raise("%s: %s cannot be read: %s", what, path, why) end)
      end
    end
  end
  return require("flow.data").Dataset.from_generator(lines, { output_signature = { { shape = {}, dtype = "string" } } })
end, signature.pop())
