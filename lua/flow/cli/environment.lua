-- cli/environment.lua: the environment variables that flowlua reads, and those whose names begin like its own but which it does not read,
-- such as FLOW_THREDS: nothing else tells that they have no effect.

local errors = require "flow.errors"
local os = require("flow.host").os
local io = require("flow.host").io

local environment = {}

-- spec/unit/environment_spec.lua compares the list with what the sources ask for.
environment.NAMES = {
  "FLOWLUA_LIB", "FLOWLUA_PATH", "FLOW_CACHE", "FLOW_CUDA_FUSION", "FLOW_CUDA_KERNELS", "FLOW_CUDA_LIBS", "FLOW_CUDA_OVERLAP",
  "FLOW_CUDA_TUNE", "FLOW_DATA", "FLOW_DATA_PORTS", "FLOW_DEAD_AFTER", "FLOW_DEVICE", "FLOW_ENCRYPT", "FLOW_HEARTBEAT", "FLOW_HOST",
  "FLOW_INSECURE", "FLOW_ISA", "FLOW_JOB_DIR", "FLOW_LAUNCHED", "FLOW_LISTEN_DESCRIPTOR", "FLOW_MAX_RESTARTS", "FLOW_MIN_WORKERS",
  "FLOW_MODULES", "FLOW_PLUGINS", "FLOW_PORT", "FLOW_REASSIGN_AFTER", "FLOW_SECRET", "FLOW_SECRET_FILE", "FLOW_SHARED_MEMORY",
  "FLOW_SHRINK_AFTER", "FLOW_SSH", "FLOW_START_WITHIN", "FLOW_STATUS_PORT", "FLOW_THREADS", "FLOW_TIMEOUT_SECONDS",
}

-- Of the scripts that build and test flowlua.
local OF_SCRIPTS = { "^FLOW_BUILD", "^FLOW_CASE", "^FLOW_COMPILER_TESTS$", "^FLOW_EMULATED_", "^FLOW_FIRST_CASE$", "^FLOW_FORMAT_BASE$",
  "^FLOW_LIST_LAUNCHES$", "^FLOW_PEERS$", "^FLOW_SANITIZED$", "^FLOW_TEST_", "^FLOWLUA_PROGRAM$" }

local function is_known(name)
  for _, known in ipairs(environment.NAMES) do
    if name == known then return true end
  end
  for _, pattern in ipairs(OF_SCRIPTS) do
    if name:find(pattern) then return true end
  end
  return false
end

-- A line for each variable that begins as ours and is not read, sorted; none where this system does not list its environment.
function environment.unknown()
  local lines, file = {}, io.open("/proc/self/environ", "rb")
  local text = file and file:read("*a") or ""
  if file then file:close() end
  for name in text:gmatch("([^%z=]+)=[^%z]*") do
    if name:find("^FLOW_") or name:find("^FLOWLUA_") then
      if os.getenv(name) and not is_known(name) then
        lines[#lines + 1] = ("flowlua does not read the variable %s%s"):format(name, errors.suggestion(name, environment.NAMES))
      end
    end
  end
  table.sort(lines)
  return lines
end

return environment
