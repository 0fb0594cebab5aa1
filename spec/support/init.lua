--- What every spec begins with: require "spec.support" finds the modules of this tree and the library of the build under
--- test ($FLOWLUA_LIB, else build/lib), and gives the helpers below.
local ffi = require "ffi"

local root = debug.getinfo(1, "S").source:match("^@(.*)spec/support/init%.lua$")
if root:sub(1, 1) ~= "/" then root = os.getenv("PWD") .. "/" .. root end
package.path = root .. "lua/?.lua;" .. root .. "lua/?/init.lua;" .. package.path

if not os.getenv("FLOWLUA_LIB") then
  pcall(ffi.cdef, "int setenv(const char *name, const char *value, int overwrite);")
  ffi.C.setenv("FLOWLUA_LIB", root .. "build/lib/libflow.so.0", 1)
end

local support = { root = root }

--- The flowlua program of the build under test.
support.program = os.getenv("FLOWLUA_PROGRAM") or (os.getenv("FLOWLUA_LIB"):gsub("lib/libflow%.so%.0$", "bin/flowlua"))

--- The same for a shell that runs it on the modules of this tree; after another command it needs `env`.
support.command = ("FLOWLUA_PATH=%slua %s"):format(root, support.program)

--- The message of the error that f(...) raises, which must carry the line of the spec that called, without that position.
function support.message_of(f, ...)
  local ok, message = pcall(f, ...)
  if ok then error("expected an error, but the call succeeded", 2) end
  local file, text = tostring(message):match("^([^\n]-_spec%.lua):%d+: (.*)$")
  if not file then error("the error does not name a line of the spec: " .. tostring(message), 2) end
  return text
end

--- Starts a shell command; returns a function that waits for its end and returns its standard output and error together, and its exit code.
--- Commands that mostly wait are started together and then waited for, one after the other.
function support.start(command)
  local pipe = assert(io.popen("{ " .. command .. "; } 2>&1; echo \"[exit $?]\""))
  return function()
    local text = pipe:read("*a")
    pipe:close()
    local output, code = text:match("^(.*)%[exit (%d+)%]\n$")
    return output, tonumber(code)
  end
end

--- Runs a shell command: the same, and waits.
function support.run(command)
  return support.start(command)()
end

--- Why the specs cannot count instructions by valgrind here; nil if they can.
function support.cannot_count_instructions()
  local compiler = support.run("gcc -dumpversion"):match("^%d+")
  if jit.arch ~= "x64" or compiler ~= "12" then return "the counts are of gcc 12 on x86-64, here is gcc " .. tostring(compiler) end
  if not support.run("valgrind --version"):match("^valgrind") then return "valgrind is not installed" end
  if support.run("nm -D " .. os.getenv("FLOWLUA_LIB")):find("__[at]san_init") then return "valgrind cannot run a build with sanitizers" end
  if not support.run("grep -m1 -ow avx2 /proc/cpuinfo"):find("avx2") then return "this machine has no AVX2" end
end

-- The folder of all temporary files of this process, made when it is first asked for, in $TMPDIR: scripts/test removes what is there.
-- Without scripts/test it goes when the Lua state closes, unless a forked child closes its copy.
local kept, made_files = nil, 0
local function temporary_folder()
  if kept then return kept.path end
  pcall(ffi.cdef, "char *mkdtemp(char *pattern);")
  pcall(ffi.cdef, "int getpid(void);")
  local pattern = (os.getenv "TMPDIR" or "/tmp") .. "/flow_spec_XXXXXX"
  local buffer = ffi.new("char[?]", #pattern + 1, pattern)
  assert(ffi.C.mkdtemp(buffer) ~= nil, "no folder can be made at " .. pattern)
  local path, process = ffi.string(buffer), ffi.C.getpid()
  local guard = newproxy(true)
  getmetatable(guard).__gc = function()
    if ffi.C.getpid() == process then os.execute(("chmod -R u+w %s; rm -rf %s"):format(path, path)) end
  end
  kept = { path = path, guard = guard }
  return path
end

--- The warnings of the library while f runs, each in a line, "" for none.
function support.warnings(f)
  local log, lines = require("flow").log, {}
  log.sink = function(level, text) if level == "warning" then lines[#lines + 1] = text end end
  local ok, problem = pcall(f)
  log.sink = nil
  assert(ok, problem)
  return table.concat(lines, "\n")
end

--- A path at which there is nothing yet, in the folder of this process' temporary files. Nobody has to remove what is written there.
function support.path(ending)
  made_files = made_files + 1
  return ("%s/%d%s"):format(temporary_folder(), made_files, ending or "")
end

--- A fresh temporary folder.
function support.folder()
  local folder = support.path()
  assert(os.execute("mkdir " .. folder) == 0)
  return folder
end

--- A file with this content in a fresh temporary folder; its path.
function support.file(name, content)
  local path = support.folder() .. "/" .. name
  support.write(path, content)
  return path
end

--- What a file holds.
function support.read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read("*a")
  file:close()
  return text
end

--- Makes this the content of a file.
function support.write(path, text)
  local file = assert(io.open(path, "wb"))
  assert(file:write(text))
  file:close()
end

function support.exists(path)
  local file = io.open(path)
  if file then file:close() end
  return file ~= nil
end

--- How often the text holds the pattern.
function support.count(text, pattern)
  return select(2, text:gsub(pattern, ""))
end

--- Why processes cannot add up by "MPI" here, or nil; by "RING" they always can. sanitized: also where the build under test is for a
--- sanitizer.
function support.missing_engine(engine, sanitized)
  if engine:upper() == "RING" then return nil end
  local plugin = os.getenv("FLOWLUA_LIB"):match("^(.*/)") .. "libflow_mpi.so"
  if not support.exists(plugin) then return "this build has no libflow_mpi.so (libopenmpi-dev)" end
  if os.execute("command -v mpirun >/dev/null") ~= 0 then return "mpirun is not installed (openmpi-bin)" end
  if sanitized and os.getenv("FLOW_SANITIZED") then return "Open MPI has its own findings under sanitizers" end
end

return support
