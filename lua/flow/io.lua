-- io.lua: flow.io: files and folders, as tf.io.gfile has them.
--
--   flow.io.makedirs("runs/7")            flow.io.exists(path)     flow.io.isdir(path)      flow.io.join("runs", "7", "log.csv")
--   flow.io.dirname("runs/7/log.csv")     flow.io.basename("runs/7/log.csv")
--   flow.io.listdir("runs")               flow.io.glob("runs/*/*.keras")
--   flow.io.read_file("notes.txt")
--   flow.io.copy(from, to, overwrite)     flow.io.rename(from, to, overwrite)     flow.io.remove(file)     flow.io.rmtree(folder)
--
-- A path may name a bucket: gs://bucket/file is /gcs/bucket/file, where the bucket is mounted (as Vertex AI does, or gcsfuse
-- anywhere). flow.io.mounts tells where the buckets of a scheme are; scripts add mounts of their own: flow.io.mounts.s3 = "/s3".

local host = require "flow.host"
local native = require "flow.ffi"
local errors = require "flow.errors"

local C, check, raise = native.C, native.check, errors.raise
local signature = require "flow.signature"

local takes = signature.takes
local io = signature.module("flow.io", { mounts = { gs = "/gcs" } })

local internal = signature.internal(io)

local HOW_TO_MOUNT = { gs = "; mount it there, e.g. gcsfuse %s %s" }

-- The path of this machine that a user's path means. Everything in flowlua that takes a path asks here; what names the caller.
function io.path(path, what)
  if type(path) ~= "string" then raise("%s: a path is a string, got %s", what or "flow.io.path", errors.describe(path)) end
  if path == "" then raise("%s: the path is empty", what or "flow.io.path") end
  if path:find("\0", 1, true) then raise("%s: a path has no zero bytes, got %q", what or "flow.io.path", path) end
  local scheme, bucket, rest = path:match("^(%a[%w+.-]*)://([^/]*)/*(.*)$")
  if not scheme then return path end
  if scheme == "file" then return path:match("^file://(/.*)$") or raise("%q: file:// stands before an absolute path", path) end
  local mount = io.mounts[scheme]
  if not mount then
    raise("%q: nothing is mounted for %s://; mount it and tell where: flow.io.mounts.%s = \"/folder/of/buckets\"", path, scheme, scheme)
  end
  if bucket == "" or bucket == "." or bucket == ".." then raise("%q names no bucket: %s://bucket/file", path, scheme) end
  local folder = mount .. "/" .. bucket
  if C.flow_path_kind(folder) ~= C.FLOW_PATH_FOLDER then
    raise("%q: the bucket is looked for in %s, which does not exist%s", path, folder, (HOW_TO_MOUNT[scheme] or ""):format(bucket, folder))
  end
  return rest == "" and folder or folder .. "/" .. rest
end

-- Whether there is a file, a folder or anything else; a link to nothing is not.
function io.exists(path) return C.flow_path_kind(io.path(path, "flow.io.exists")) ~= C.FLOW_PATH_NONE end

local MOST_PIPED, PIECE = 2 ^ 30, 2 ^ 16

-- All bytes of a pipe or a device, which may have no end.
local function read_piped(file, path)
  local pieces = {}
  for i = 1, MOST_PIPED / PIECE do
    pieces[i] = file:read(PIECE)
    if not pieces[i] then return table.concat(pieces) end
  end
  file:close()
  raise("flow.io.read_file: %s cannot be read: it is no regular file, and has %d bytes or more; does it have an end?", path, MOST_PIPED)
end

-- All bytes of a file, as a string.
function io.read_file(path)
  path = io.path(path, "flow.io.read_file")
  local file, problem = host.io.open(path, "rb")
  local text = file and (C.flow_path_kind(path) == C.FLOW_PATH_OTHER and read_piped(file, path) or file:read "*a")
  if file then file:close() end
  return text or raise("flow.io.read_file: %s cannot be read: %s", path, problem and problem:sub(#path + 3) or "it is not a file")
end

-- Handles and tensors are received in arrays that are made once: nothing here yields between a call and native.own or native.tensor.
local wave_out = native.out("flow_tensor")

-- The sound in a WAVE file: float32 {samples, channels}, values from -1 to below 1, and samples a second. desired_samples: how many, cut
-- off or filled up with zeros.
takes "path, { desired_samples?: count }"
function io.load_wav(path, options)
  local rate = native.array("int", 1)
  check(C.flow_wave_load(io.path(path, "flow.io.load_wav"), options.desired_samples or -1, rate, wave_out))
  return native.tensor(wave_out[0]), rate[0]
end

-- A whole number from 0 as `count` bytes, the lowest first.
local function little_endian(number, count)
  local bytes = {}
  for i = 1, count do
    bytes[i] = string.char(number % 256)
    number = math.floor(number / 256)
  end
  return table.concat(bytes)
end

-- Writes {samples} or {samples, channels} with values from -1 to 1 as a WAVE file of 16 bits, as tf.audio.encode_wav rounds them.
takes "path, audio: data, sample_rate: count"
function io.save_wav(path, audio, rate)
  local what = "flow.io.save_wav"
  if not native.is_tensor(audio) then raise("%s: a sound is a tensor, flow.tensor(list), got %s", what, errors.describe(audio)) end
  local shape = audio.shape
  local channels = #shape == 2 and shape[2] or 1
  if #shape < 1 or #shape > 2 or channels < 1 or channels > 32767 then      -- a frame of all channels has up to 65535 bytes
    raise("%s: a sound is {samples} or {samples, channels}, up to 32767 of them, got {%s}", what, table.concat(shape, ", "))
  end
  local samples = audio.size > 0 and audio:to("float32"):reshape({ -1 }):totable() or {}
  for i, value in ipairs(samples) do
    local whole = math.max(math.min(math.floor(value * 32768 + 0.5), 32767), -32768)
    samples[i] = little_endian(whole ~= whole and 0 or whole % 65536, 2)
  end
  local data = table.concat(samples)
  if #data > 2 ^ 32 - 64 or rate >= 2 ^ 32 / 2 / channels then raise("%s: a WAVE file holds less than 4 GB, this takes more", what) end
  io.write(path, "RIFF" .. little_endian(36 + #data, 4) .. "WAVEfmt " .. little_endian(16, 4) .. little_endian(1, 2)
    .. little_endian(channels, 2) .. little_endian(rate, 4) .. little_endian(rate * 2 * channels, 4) .. little_endian(2 * channels, 2)
    .. little_endian(16, 2) .. "data" .. little_endian(#data, 4) .. data)
end

function io.isdir(path) return C.flow_path_kind(io.path(path, "flow.io.isdir")) == C.FLOW_PATH_FOLDER end
function io.makedirs(path) check(C.flow_make_folders(io.path(path, "flow.io.makedirs"))) end
function io.remove(path) check(C.flow_remove_file(io.path(path, "flow.io.remove"))) end
-- Removes a folder and all in it; links in it go, what they lead to stays.
function io.rmtree(path) check(C.flow_remove_tree(io.path(path, "flow.io.rmtree"))) end

takes "from, to, overwrite: boolean = false"
function io.rename(from, to, overwrite)
  check(C.flow_rename_path(io.path(from, "flow.io.rename"), io.path(to, "flow.io.rename"), overwrite and 1 or 0))
end
takes "from, to, overwrite: boolean = false"
function io.copy(from, to, overwrite)
  check(C.flow_copy_file(io.path(from, "flow.io.copy"), io.path(to, "flow.io.copy"), overwrite and 1 or 0))
end

-- The parts with slashes between them; a part that is an absolute path, or names a bucket, starts from the beginning.
takes("parts...", true)
function io.join(...)
  local joined = ""
  for i = 1, select("#", ...) do
    local part = select(i, ...)
    if type(part) ~= "string" then raise("flow.io.join: parts are strings, got %s", errors.describe(part)) end
    if part:find("^/") or part:find("^%a[%w+.-]*://") then joined = part
    elseif joined == "" or joined:find("/$") then joined = joined .. part
    else joined = joined .. "/" .. part end
  end
  return joined
end

-- What a path has before its last slash, and after it, as Python's os.path has them: dirname "/a/b" is "/a", of "b" "".
takes "path: text"
function io.dirname(path)
  local folder = path:match("^(.*/)") or ""
  return (folder:find("[^/]") and folder:gsub("/+$", "") or folder)
end
takes "path: text"
function io.basename(path) return path:match("([^/]*)$") end

local out_listing = native.out("flow_listing")

-- The names of all in a folder, sorted.
function io.listdir(path)
  check(C.flow_listing_entries(io.path(path, "flow.io.listdir"), out_listing))
  local listing, names = native.own(out_listing, C.flow_listing_release), {}
  for i = 0, C.flow_listing_count(listing) - 1 do names[i + 1] = native.string(C.flow_listing_name(listing, i)) end
  native.close(listing, C.flow_listing_release)
  return names
end

-- Paths that match one pattern of this machine's paths, sorted by bytes: what the library returns as their bytes and where each starts.
function internal.glob_path(pattern)
  local out = native.out("flow_tensor", 2)
  check(C.flow_glob(pattern, out, out + 1))
  local bytes, starts = native.tensor(out[0]), native.tensor(out[1])
  local text, at, list = native.string(native.data(bytes), C.flow_tensor_size(native.pointer(bytes))), native.data(starts), {}
  for i = 1, C.flow_tensor_size(native.pointer(starts)) - 1 do list[i] = text:sub(tonumber(at[i - 1]) + 1, tonumber(at[i])) end
  return list
end

-- The paths that match a pattern, or any of a list of patterns, sorted.
function io.glob(patterns)
  local found, list = {}, type(patterns) == "table" and patterns or { patterns }
  if patterns == nil then raise("flow.io.glob takes a pattern or a list of them, got nil") end
  errors.check_list("flow.io.glob", list)
  for _, pattern in ipairs(list) do
    for _, path in ipairs(io.glob_path(io.path(pattern, "flow.io.glob"))) do found[#found + 1] = path end
  end
  table.sort(found)
  return found
end

-- A file to be read; nil: there is none. Raises if there is one that cannot be read: what begins anew without it must not take its place.
local ENOENT, ENOTDIR = 2, 20
function internal.open_existing(path)
  local file, problem, code = host.io.open(path, "rb")
  if not file and code ~= ENOENT and code ~= ENOTDIR then errors.raise_passing("cannot read " .. problem) end
  return file
end

-- Raises, before work is spent, if a file could not be written there: another kind of file is in its place or in that of one of its
-- folders, or its nearest folder that exists takes no file. Folders that do not exist yet are made when the file is written.
function internal.check_writable(path, what)
  local kind = C.flow_path_kind(path)
  if kind == C.FLOW_PATH_FOLDER then raise("%s: cannot write %s: it is a folder; the path is that of a file", what, path) end
  if kind ~= C.FLOW_PATH_NONE and kind ~= C.FLOW_PATH_FILE then return end      -- a pipe or a device: as its user means it
  local folder = path
  repeat folder = io.dirname(folder) until folder == "" or folder == "/" or C.flow_path_kind(folder) ~= C.FLOW_PATH_NONE
  if folder == "" then folder = "." end
  if C.flow_path_kind(folder) ~= C.FLOW_PATH_FOLDER then raise("%s: cannot write %s: %s is not a folder", what, path, folder) end
  local probe = ("%s/.flowlua-%.0f"):format(folder, C.flow_clock() * 1e6)
  if C.flow_write_file(probe, "", 0) ~= 0 then
    raise("%s: cannot write %s: %s", what, path, (native.string(C.flow_last_error()):gsub("^[^\n]*: ", "")))
  end
  C.flow_remove_file(probe)
end

-- Calls f with the path of a new folder, in $TMPDIR or else /tmp, that only this user may enter, and returns what f returns. The folder is
-- removed afterwards, also when f raises.
function internal.in_temporary_folder(f)
  local parent = host.getenv "TMPDIR"
  if not parent or parent == "" then parent = "/tmp" end
  local pattern = parent .. "/flowlua-XXXXXX"
  local bytes = native.array("char", #pattern + 1)
  native.copy(bytes, pattern)
  if native.other_library(nil, "char *mkdtemp(char *pattern);").mkdtemp(bytes) == nil then
    raise("no temporary folder can be made in %s: TMPDIR names a folder that exists and may be written to", parent)
  end
  local folder = native.string(bytes)
  local ok, result = pcall(f, folder)
  C.flow_remove_tree(folder)
  if not ok then error(result, 0) end
  return result
end

-- Writes a text as a whole file: its readers see the old content or the new, never a part.
function io.write(path, text)
  if type(text) ~= "string" then raise("flow.io.write: the content is a string, got %s", errors.describe(text)) end
  check(C.flow_write_file(io.path(path, "flow.io.write"), text, #text))
end

-- The same by the names of tf.io.gfile.
local gfile = signature.module "flow.io.gfile"
for _, name in ipairs { "exists", "isdir", "makedirs", "remove", "rmtree", "rename", "copy", "join", "listdir", "glob" } do
  gfile[name] = io[name]
end
gfile.mkdir = io.makedirs

-- A file as Lua's io.open gives it, of a path as all paths here.
takes "name: path, mode: string = 'r'"
function gfile.GFile(name, mode)
  local file, problem = host.io.open(io.path(name, "flow.io.gfile.GFile"), mode)
  if not file then raise("flow.io.gfile.GFile: %s", problem) end
  return file
end
io.gfile = gfile

return io
