# The sources of apps that the fuzz targets need: apps is a program, not a library to link with.
set(app_readers
  apps/atomic_file.cpp apps/batch_request.cpp apps/conversation.cpp apps/output.cpp
  apps/sampling_options.cpp apps/signals.cpp apps/terminal.cpp apps/text_input.cpp)
