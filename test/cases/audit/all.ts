import { CAPACITY_CASES } from './capacity.js';
import type { CaseTable } from './case.js';
import { DETECTION_CASES } from './detection.js';
import { EXPOSURE_CASES } from './exposure.js';
import { RELEASE_CASES } from './release.js';
import { SHARING_CASES } from './sharing.js';
import { VERSION_CASES } from './version.js';

/** Fixtures by the id of their rule. */
export const RULE_CASES: CaseTable = {
  ...CAPACITY_CASES,
  ...RELEASE_CASES,
  ...DETECTION_CASES,
  ...SHARING_CASES,
  ...EXPOSURE_CASES,
  ...VERSION_CASES,
};
