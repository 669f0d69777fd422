#ifndef GANNET_SERVER_MAIN_HTTP_PAGE_H_
#define GANNET_SERVER_MAIN_HTTP_PAGE_H_

#include <string_view>

namespace gannet {

// The live page: page.html, which the build embeds.
extern const std::string_view kPage;

}  // namespace gannet

#endif  // GANNET_SERVER_MAIN_HTTP_PAGE_H_
