// How the model loaders read files and JSON that nobody has checked, for apps, which see engine
// alone: requests and saved conversations deserve the same care.
#pragma once

#include "model_loaders/file_reader.h"
#include "model_loaders/json.h"
#include "model_loaders/printable.h"
#include "model_loaders/strict_json.h"
