int part(void) {
  return 41;
}
