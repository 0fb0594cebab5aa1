-- directory.lua: the file `checkpoint` that says which checkpoints a folder holds: TensorFlow's CheckpointState as protobuf text.
--
--   model_checkpoint_path: "ckpt-3"                the latest
--   all_model_checkpoint_paths: "ckpt-2"           all, the oldest first, each with the time when it was written
--   all_model_checkpoint_timestamps: 1700000000
--   last_preserved_timestamp: 1700000000
--
-- Paths without the ending .safetensors; relative ones are relative to the folder.

local native = require "flow.ffi"
local errors = require "flow.errors"
local files = require "flow.io"
local log = require "flow.log"
local signature = require "flow.signature"

local C, check, raise = native.C, native.check, errors.raise
local directory = { ENDING = ".safetensors", STATE = "checkpoint" }

function directory.file_of(path)
  return path:sub(-#directory.ENDING) == directory.ENDING and path or path .. directory.ENDING
end

-- The folder of a path, and what comes after it.
function directory.split(path)
  local folder, name = path:match("^(.*)/([^/]*)$")
  if not folder then return ".", path end
  return folder == "" and "/" or folder, name
end

function directory.join(folder, name)
  if name:sub(1, 1) == "/" or folder == "." then return name end
  return folder:gsub("/$", "") .. "/" .. name
end

---- the text --------------------------------------------------------------------------------------------------------------------

-- A text as protobuf's text format quotes it: control characters, quotes and backslashes as octal numbers.
local function quoted(text)
  return '"' .. text:gsub('[%c"\\]', function(c) return ("\\%03o"):format(c:byte()) end) .. '"'
end

local ESCAPES = { n = "\n", t = "\t", r = "\r" }

-- The text between quotes of protobuf's text format.
local function unquoted(text)
  return (text:gsub("\\(.)(%d?%d?)", function(first, rest)
    if first:find("%d") then return string.char(tonumber(first .. rest, 8) % 256) end
    return (ESCAPES[first] or first) .. rest
  end))
end

-- state: { latest = path, paths = list, times = list, preserved = time }. Paths inside of the folder are written without it.
function directory.encode(folder, state)
  local function relative(path)
    local place, name = directory.split(path)
    return quoted(place == folder and name or path)
  end
  local lines = { "model_checkpoint_path: " .. relative(state.latest) }
  for _, path in ipairs(state.paths) do lines[#lines + 1] = "all_model_checkpoint_paths: " .. relative(path) end
  for _, time in ipairs(state.times) do lines[#lines + 1] = ("all_model_checkpoint_timestamps: %.17g"):format(time) end
  if state.preserved then lines[#lines + 1] = ("last_preserved_timestamp: %.17g"):format(state.preserved) end
  return table.concat(lines, "\n") .. "\n"
end

-- The state that a text says; false if it names no latest checkpoint. Lines that are not known are skipped.
local function decode(folder, text)
  local state = { latest = false, paths = {}, times = {}, preserved = false }
  for key, value in text:gmatch("([%w_]+)%s*:%s*([^\n]*)") do
    local path = value:match('^"(.*)"')
    if key == "model_checkpoint_path" and path then state.latest = directory.join(folder, unquoted(path))
    elseif key == "all_model_checkpoint_paths" and path then table.insert(state.paths, directory.join(folder, unquoted(path)))
    elseif key == "all_model_checkpoint_timestamps" then table.insert(state.times, tonumber(value) or 0)
    elseif key == "last_preserved_timestamp" then state.preserved = tonumber(value) or false end
  end
  return state.latest and state
end

---- the file --------------------------------------------------------------------------------------------------------------------

function directory.state_file(folder)
  return directory.join(folder, directory.STATE)
end

-- What the folder's file says; nil if there is none.
function directory.read(folder)
  local file = signature.internal(files).open_existing(directory.state_file(folder))
  if not file then return nil end
  local text = file:read("*a")
  file:close()
  local state = text and decode(folder, text)
  if not state then log.warning("%s says nothing about checkpoints; it is ignored", directory.state_file(folder)) end
  return state or nil
end

function directory.write(folder, state)
  local text = directory.encode(folder, state)
  check(C.flow_write_file(directory.state_file(folder), text, #text))
end

-- The path of the newest checkpoint that the folder's file names, without the ending; nil if there is none.
function directory.latest_checkpoint(folder)
  if type(folder) ~= "string" then raise("flow.train.latest_checkpoint: a folder is a string, got %s", errors.describe(folder)) end
  folder = files.path(folder, "flow.train.latest_checkpoint")
  local state = directory.read(folder)
  if not state then return nil end
  if C.flow_path_kind(directory.file_of(state.latest)) == C.FLOW_PATH_FILE then return state.latest end
  if C.flow_path_kind(state.latest .. ".index") == C.FLOW_PATH_FILE then
    log.warning("%s is in TensorFlow's own format, which is not read", state.latest)
  else
    log.warning("%s names %s, which does not exist", directory.state_file(folder), directory.file_of(state.latest))
  end
  return nil
end

return directory
