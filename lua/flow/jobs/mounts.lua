-- mounts.lua: what tasks see of storage: folders of the host, NFS, buckets as folders, and code from a Git repository.

local mounts = {}

local SCHEMES = { gs = "/gcs/", s3 = "/s3/", oss = "/oss/" }      -- where a bucket is without another path: as Vertex AI has it

-- "SOURCE:PATH[:ro]" as { kind =, source =, path =, read_only =, ... }, nil for a text of another form.
local function read_one(text)
  local read_only = text:find ":ro$" ~= nil
  text = text:gsub(":ro$", "")
  local scheme, bucket, rest = text:match "^(%l%w*)://([^/:]+)([^:]*):?"
  if SCHEMES[scheme] then
    local path = text:match "^%l%w*://[^:]*:(/.*)$"
    if not path and text:find("://[^:]*:") then return nil end
    return { kind = "bucket", scheme = scheme, bucket = bucket, folder = rest:gsub("^/", ""), path = path or SCHEMES[scheme] .. bucket,
             read_only = read_only }
  elseif scheme == "nfs" then
    local path = text:match "^nfs://[^:]*:(/.*)$"
    if not path or rest == "" then return nil end
    return { kind = "nfs", server = bucket, export = rest, path = path, read_only = read_only }
  end
  local claim, path = text:match "^pvc:([%l%d][%l%d.-]*):(/.*)$"
  if claim then return { kind = "claim", claim = claim, path = path, read_only = read_only } end
  local source, target = text:match "^(/[^:]*):(/[^:]*)$"
  if source then return { kind = "path", source = source, path = target, read_only = read_only } end
end

-- The mounts of all --mount texts, in order. Texts of another form and second mounts at a path are reported and left out.
function mounts.read(list, report)
  local found, seen = {}, {}
  for _, text in ipairs(list) do
    local mount = read_one(text)
    if not mount then
      report:error("--mount", "%q is not one of /FOLDER:/PATH, nfs://SERVER/EXPORT:/PATH, gs://BUCKET[:/PATH], pvc:CLAIM:/PATH, with :ro "
        .. "for read only", text)
    elseif seen[mount.path] then
      report:error("--mount", "%s is mounted twice", mount.path)
    else
      seen[mount.path] = true
      found[#found + 1] = mount
    end
  end
  return found
end

mounts.CODE = "/root/code"
mounts.TOKEN = "GIT_TOKEN"
mounts.CLONE_IMAGE = "alpine/git"

-- The repository that the flags name, nil without one. Its token comes from the environment of the machine that clones, never from a URL,
-- which is in files and logs.
function mounts.read_git(options, report)
  local git = { url = options.git_url, branch = options.git_branch, commit = options.git_commit,
                path = options.git_path ~= "" and options.git_path or mounts.CODE }
  if git.url == "" then
    for _, name in ipairs { "git_branch", "git_commit", "git_path" } do
      if options[name] ~= "" and options.code_source_id == "" then
        report:error("--" .. name:gsub("_", "-"), "goes with --git-url: of which repository?")
      end
    end
    return nil
  end
  if git.url:find "^%a+://[^/]*@" and not git.url:find "^ssh://" then
    report:error("--git-url", "the URL has a user or a token in it, which would stand in files: put the token into the variable %s",
      mounts.TOKEN)
  elseif not (git.url:find "^https?://%S+$" or git.url:find "^ssh://%S+$" or git.url:find "^git@%S+:%S+$" or git.url:find "^file:///%S+$"
    or git.url:find "^/%S+$") then
    report:error("--git-url", "%q is not the URL of a repository", git.url)
  end
  for _, name in ipairs { "branch", "commit" } do
    if git[name]:find "^%-" or git[name]:find "[^%w%-_./]" then report:error("--git-" .. name, "%q is not a name", git[name]) end
  end
  if git.commit ~= "" and not git.commit:find "^%x+$" then report:error("--git-commit", "%q is not a commit", git.commit) end
  if not git.path:find "^/" then report:error("--git-path", "%q is not an absolute path", git.path) end
  return git
end

local HELPER = [[credential.helper=!f() { echo username=x-access-token; echo "password=$GIT_TOKEN"; }; f]]

-- The lines of a shell that clone a repository to its path, or another one; $GIT_TOKEN is read when they run.
function mounts.clone_lines(git, quote, path)
  local options = git.commit == "" and " --depth 1" or ""
  if git.branch ~= "" then options = options .. " --branch " .. quote(git.branch) end
  local lines = {
    ("if [ -n \"${GIT_TOKEN:-}\" ]; then set -- -c %s; else set --; fi"):format(quote(HELPER)),
    ('git "$@" clone --quiet%s -- %s %s'):format(options, quote(git.url), quote(path or git.path)),
  }
  if git.commit ~= "" then lines[3] = ("git -C %s checkout --quiet %s"):format(quote(path or git.path), quote(git.commit)) end
  return lines
end

return mounts
