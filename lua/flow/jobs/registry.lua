-- registry.lua: the jobs that were submitted from here: a folder each, with the files of its back end and job.json, which says how to
-- ask for its state, its output and its end.

local errors = require "flow.errors"
local host = require "flow.host"
local json = require "flow.json"
local files = require "flow.io"

local raise = errors.raise
local registry = {}

-- $XDG_STATE_HOME/flowlua/jobs, or ~/.local/state/flowlua/jobs.
function registry.home()
  local state = host.getenv("XDG_STATE_HOME")
  if not state or state == "" then
    local home = host.getenv("HOME")
    if not home or home == "" then raise("jobs are kept below $XDG_STATE_HOME or $HOME, and neither is set") end
    state = home .. "/.local/state"
  end
  return state .. "/flowlua/jobs"
end

function registry.folder(name) return registry.home() .. "/" .. name end

-- record: { name =, backend =, folder =, created =, id =, commands = { status =, logs =, follow =, cancel = } }.
function registry.write(record)
  files.write(registry.folder(record.name) .. "/job.json", json.encode(record) .. "\n")
end

-- nil if there is no job of that name.
function registry.read(name)
  local file = name:find "^[%w_-]+$" and io.open(registry.folder(name) .. "/job.json", "rb")
  if not file then return nil end
  local text = file:read("*a")
  file:close()
  return json.decode(text, name)
end

-- All records in the order of their names.
function registry.list()
  local list = {}
  if not files.isdir(registry.home()) then return list end
  for _, name in ipairs(files.listdir(registry.home())) do list[#list + 1] = registry.read(name) end
  return list
end

-- The record of that name; raises where there is none.
function registry.find(name)
  local record = registry.read(name)
  if record then return record end
  local names = {}
  for _, other in ipairs(registry.list()) do names[other.name] = true end
  raise("no job %q was submitted from here%s", name, next(names) and errors.choices(name, names) or "")
end

return registry
