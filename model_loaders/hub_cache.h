// The folder layout in which Hugging Face tools keep downloaded models:
//
//   <cache>/models--org--name/refs/main                       holds a commit
//   <cache>/models--org--name/snapshots/<commit>/config.json  links to ../../blobs/<hash>
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

// "org/name" or "org/name@revision".
struct HubName {
  std::string organisation;
  std::string name;
  std::string revision;  // branch, tag or commit; "" when none is asked for, which means main
};

// Nothing when `text` is not such a name. All parts are safe file names: none can lead out of the
// cache.
std::optional<HubName> parse_hub_name(std::string_view text);

// The snapshot's folder. Where no revision is asked for and none is called main, the only snapshot
// there is; throws Error with their names where there are several. Nothing when it is not in the
// cache; `tried` gets the paths that were looked at.
std::optional<std::string> find_snapshot(const HubName& name, const std::string& cache_folder,
                                         std::vector<std::string>& tried);

}  // namespace tessera
