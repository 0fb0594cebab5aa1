-- package.lua: a script, or a module, with the modules that it requires, as files that go together to where it runs.

local errors = require "flow.errors"
local shell = require "flow.shell"

local raise = errors.raise
local package_of = {}

-- What Kubernetes takes as a Secret, as text of base 64.
package_of.MOST_BYTES = 700000

-- The bytes of a file; nil: there is none, or it is a folder.
local function read(path)
  local file = io.open(path, "rb")
  if not file then return nil end
  local text = file:read("*a")      -- nil for a folder
  file:close()
  return text
end

-- The file below the root that require(name) would find there, nil for a module from elsewhere.
local function find(root, name)
  local path = name:gsub("%.", "/")
  for _, candidate in ipairs { path .. ".lua", path .. "/init.lua" } do
    if read(root .. "/" .. candidate) then return candidate end
  end
end

-- The files below the root, by their paths from there, that the first one needs: those that it requires by a constant name, and theirs.
local function closure(root, first)
  local files, seen, at = { first }, { [first] = true }, 1
  while files[at] do
    local code = ("\n" .. read(root .. "/" .. files[at])):gsub("%-%-%[%[.-%]%]", ""):gsub("%s%-%-[^\n]*", "\n")
    for name in code:gmatch "require%s*%(?%s*[\"']([%w_.-]+)[\"']" do
      local found = find(root, name)
      if found and not seen[found] then
        seen[found] = true
        files[#files + 1] = found
      end
    end
    at = at + 1
  end
  table.sort(files)
  return files
end

-- folder: that of --package-path; what: { "train.lua" } or { "-m", "trainer.task" }. Returns { root =, files =, what = }: what, as it is
-- run in the root. A module's package may be the folder itself, as gcloud has it: --package-path trainer --module-name trainer.task.
function package_of.collect(folder, what)
  local root = folder:gsub("(.)/+$", "%1")
  local module = what[1] == "-m" and what[2]
  local first
  if module then
    first = find(root, module)
    if not first and root:match "[^/]*$" == module:match "^[^.]*" then
      root = root:match "^(.*)/[^/]*$" or "."
      first = find(root, module)
    end
    if not first then raise("--package-path %s: there is no module %s in it", folder, module) end
  else
    local script = what[1]:gsub("^%./", "")
    if script:sub(1, #root + 1) == root .. "/" then script = script:sub(#root + 2) end
    if script:find "^/" or script:find "%.%./" or not read(root .. "/" .. script) then
      raise("--package-path %s: the script %s is not in it", folder, what[1])
    end
    first, what = script, { script }
  end
  return { root = root, files = closure(root, first), what = what }
end

-- The bytes of a tar.gz of what was collected, equal for equal files. base64: as text. Raises when a file has gone or a program lacks. The
-- archive is made in a file first: of a pipe's parts a shell gives only the last one's exit code, and gzip packs what a failed tar leaves.
function package_of.pack(collected, base64)
  local names = {}
  for i, name in ipairs(collected.files) do names[i] = shell.quote("./" .. name) end
  local tar = ("tar --create --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 --directory=%s %s"):format(
    shell.quote(collected.root), table.concat(names, " "))
  local script = '(file=$(mktemp) && %s >"$file" && gzip --no-name <"$file"%s; code=$?; rm -f "$file"; exit $code)'
  local bytes, code = shell.read(script:format(tar, base64 and " | base64 --wrap=0" or ""))
  if code ~= 0 or bytes == "" then
    raise("%s cannot be packed: tar and gzip are needed, and each of its files: %s", collected.root, table.concat(collected.files, ", "))
  end
  return bytes
end

-- A command that unpacks the archive at `path` into a new folder and runs the other one there.
function package_of.command(path, command)
  local script = 'folder=$(mktemp -d) && tar -xzf "$0" -C "$folder" && cd "$folder" && exec "$@"'
  return { "/bin/sh", "-ec", script, path, unpack(command) }
end

return package_of
