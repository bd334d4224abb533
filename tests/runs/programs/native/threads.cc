// Threads, exceptions across them, files, time, locale-free streams: what C++ programs are made of.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <future>
#include <iostream>
#include <map>
#include <mutex>
#include <random>
#include <shared_mutex>
#include <stdexcept>
#include <thread>
#include <vector>

int main() {
  std::vector<std::future<long>> parts;
  for (long i = 0; i < 8; ++i)
    parts.push_back(std::async(std::launch::async, [i] {
      long sum = 0;
      for (long n = i * 1000; n < (i + 1) * 1000; ++n) sum += n;
      if (i == 5) throw std::runtime_error("part five");
      return sum;
    }));
  long sum = 0;
  for (auto& part : parts) try {
      sum += part.get();
    } catch (const std::exception& error) {
      std::cout << "caught " << error.what() << "\n";
    }
  std::cout << "sum " << sum << "\n";

  std::mutex mutex;
  std::condition_variable ready;
  bool set = false;
  std::jthread waiter([&] {
    std::unique_lock lock(mutex);
    ready.wait_for(lock, std::chrono::seconds(5), [&] { return set; });
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  {
    const std::lock_guard lock(mutex);
    set = true;
  }
  ready.notify_all();
  waiter.join();

  namespace fs = std::filesystem;
  fs::create_directories("a/b/c");
  std::ofstream("a/b/c/file") << "text\n";
  fs::copy("a", "copy", fs::copy_options::recursive);
  fs::rename("copy/b/c/file", "copy/renamed");
  fs::create_symlink("renamed", "copy/link");
  std::size_t entries = 0;
  for (const auto& entry : fs::recursive_directory_iterator(".")) entries += entry.exists();
  std::string word;
  std::ifstream("copy/link") >> word;
  fs::permissions("copy/renamed", fs::perms::owner_read);
  fs::resize_file("a/b/c/file", 2);
  fs::last_write_time("a/b/c/file", fs::file_time_type::clock::now());
  std::cout << word << " " << entries << " entries, " << fs::file_size("a/b/c/file") << " bytes, "
            << fs::remove_all("copy") << " removed\n";

  std::random_device device;
  std::map<unsigned, int> seen;
  for (int i = 0; i < 64; ++i) ++seen[device()];
  std::vector<char> large(64 << 20, 'x');
  std::cout << (seen.size() > 32 ? "random" : "not random") << " " << large.back() << "\n";
  try {
    throw std::make_exception_ptr(std::logic_error("thrown"));
  } catch (const std::exception_ptr& held) {
    try {
      std::rethrow_exception(held);
    } catch (const std::logic_error& error) {
      std::cout << error.what() << std::endl;
    }
  }
}
