/* Verbs of the candidate: two processes, of one run or of two, that want to meet. */
#pragma once

int leave_marks(long unused);
int look_for_marks(long pid);
int meet_yourself(long unused);
