// The other process of the tests in peer_death_test.cc: brings a connection to a stage, says so on
// stdout and stays there until it is killed.
//
//   cm_peer resolve|connect|respond|establish|disconnect PORT   as the active side
//   cm_peer fork PORT       established; then forks a child that lives until its stdin ends
//   cm_peer stranger PORT   as another user; prints the event that its connecting leads to
//   cm_peer listen|request|accept|serve                         as the passive side, which first
//                                                               prints the port it listens on
//   cm_peer stranger                                            the same, as another user

#include <arpa/inet.h>
#include <rdma/rdma_cma.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

void Check(int result, const char* what) {
  if (result == 0) return;
  perror(what);
  exit(1);
}

rdma_event_channel* channel = nullptr;

rdma_cm_id* Wait(rdma_cm_event_type type) {
  rdma_cm_event* event = nullptr;
  Check(rdma_get_cm_event(channel, &event), "rdma_get_cm_event");
  if (event->event != type) {
    fprintf(stderr, "%s, not %s\n", rdma_event_str(event->event), rdma_event_str(type));
    exit(1);
  }
  rdma_cm_id* id = event->id;
  rdma_ack_cm_event(event);
  return id;
}

[[noreturn]] void Stay(const char* stage) {
  printf("%s\n", stage);
  fflush(stdout);
  for (;;) pause();
}

[[noreturn]] void PrintEvent() {
  rdma_cm_event* event = nullptr;
  Check(rdma_get_cm_event(channel, &event), "rdma_get_cm_event");
  printf("%s %d\n", rdma_event_str(event->event), event->status);
  exit(0);
}

[[noreturn]] void Fork() {
  if (fork() > 0) Stay("established");
  for (char byte; read(STDIN_FILENO, &byte, 1) > 0;) {
  }
  _exit(0);
}

void BecomeStranger() {
  constexpr uid_t kNobody = 65534;
  Check(setuid(kNobody), "setuid");
}

sockaddr_in Loopback(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

void RunActive(const std::string& stage, int port) {
  rdma_cm_id* id = nullptr;
  Check(rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP), "rdma_create_id");
  sockaddr_in to = Loopback(port);
  Check(rdma_resolve_addr(id, nullptr, reinterpret_cast<sockaddr*>(&to), 1000), "resolve_addr");
  Wait(RDMA_CM_EVENT_ADDR_RESOLVED);
  Check(rdma_resolve_route(id, 1000), "rdma_resolve_route");
  Wait(RDMA_CM_EVENT_ROUTE_RESOLVED);
  if (stage == "resolve") Stay("resolved");
  rdma_conn_param param = {};
  param.qp_num = 1;
  Check(rdma_connect(id, &param), "rdma_connect");
  if (stage == "connect") Stay("connecting");
  if (stage == "stranger") PrintEvent();
  Wait(RDMA_CM_EVENT_CONNECT_RESPONSE);
  if (stage == "respond") Stay("answered");
  Check(rdma_establish(id), "rdma_establish");
  if (stage == "fork") Fork();
  if (stage == "establish") Stay("established");
  Check(rdma_disconnect(id), "rdma_disconnect");
  Stay("disconnecting");
}

void RunPassive(const std::string& stage) {
  rdma_cm_id* listener = nullptr;
  Check(rdma_create_id(channel, &listener, nullptr, RDMA_PS_TCP), "rdma_create_id");
  sockaddr_in at = Loopback(0);
  Check(rdma_bind_addr(listener, reinterpret_cast<sockaddr*>(&at)), "rdma_bind_addr");
  Check(rdma_listen(listener, 0), "rdma_listen");
  printf("%d\n", ntohs(rdma_get_src_port(listener)));
  fflush(stdout);
  if (stage == "listen" || stage == "stranger") Stay("listening");
  rdma_cm_id* id = Wait(RDMA_CM_EVENT_CONNECT_REQUEST);
  if (stage == "request") Stay("requested");
  rdma_conn_param param = {};
  param.qp_num = 1;
  Check(rdma_accept(id, &param), "rdma_accept");
  if (stage == "accept") Stay("accepted");
  Wait(RDMA_CM_EVENT_ESTABLISHED);
  Stay("established");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && strcmp(argv[1], "stranger") == 0) BecomeStranger();
  channel = rdma_create_event_channel();
  if (channel == nullptr) Check(-1, "rdma_create_event_channel");
  if (argc == 3) RunActive(argv[1], atoi(argv[2]));
  if (argc == 2) RunPassive(argv[1]);
  fprintf(stderr, "usage: cm_peer STAGE [PORT]\n");
  return 2;
}
