import type { Fleet, NodeFacts } from '../facts.js';
import { failed, notApplicable, notChecked, passed, type Rule, type RuleOutcome } from '../rule.js';
import {
  SGLANG_ARGUMENTS,
  apiPort,
  apiReach,
  isRouteOpen,
  isShut,
  keySet,
  routeSource,
  unknownReach,
  unlessServing,
} from './shared.js';

const ROUTES = ['/server_info', '/get_server_info'];

export const keysInClear: Rule = {
  meta: {
    id: 'exposure.keys-in-clear',
    group: 'exposure',
    title: 'Clients can read `/server_info`, which shows the node’s keys in clear',
    severity: 'critical',
    engines: ['sglang'],
    needs: ['endpoint', 'flags', 'manifest'],
    why: 'Every version read puts `api_key` and `admin_api_key` into the answer, and from 0.5.21 the whole launch command. With an admin key alone the route asks for no key; with an API key every client that has it reads the admin key too.',
    how: '`/server_info` answered without a key, or keys are set and clients can reach the port.',
    change:
      'Set both `--api-key` and `--admin-api-key`, give neither to clients, and put a gateway in front that does not pass `/server_info` on.',
    references: [SGLANG_ARGUMENTS],
    aisvs: ['C5.3.1'],
    cwe: ['CWE-522', 'CWE-200'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    const worker = unlessServing(node);
    if (worker !== null) return worker;
    const api = keySet(node, 'api-key');
    const admin = keySet(node, 'admin-api-key');
    const shown = node.keysShown.length > 0;
    if (api?.value !== true && admin?.value !== true && !shown) {
      return api === null || admin === null
        ? notChecked('whether it has keys is not known')
        : notApplicable('it has no keys');
    }
    const open = ROUTES.find((path) => isRouteOpen(node, path));
    const wanted = 'no client reads it';
    if (open !== undefined && shown) {
      const observed = `${open} answered without a key, with ${node.keysShown.length} keys in it`;
      return failed({ at: routeSource(node, open), observed, wanted });
    }
    const { reach, why, source } = apiReach(node);
    if (isShut(reach)) return passed(why);
    if (reach === 'unknown') return unknownReach(apiPort(node));
    const severity = api?.value === true ? 'medium' : 'high';
    return failed({ severity, at: source, observed: `keys are set, and ${why}`, wanted });
  },
};
