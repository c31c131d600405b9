export { BODY_BYTES_MAX, checkBodyHead, JSON_DEPTH_MAX, parseJsonObject, readBody } from './body.js';
export { basicPassword, checkSameOrigin } from './browser.js';
export { asCodedError, errorJson, openAiError, type OpenAiError } from './errors.js';
export {
  ANSWERED_HEADERS,
  bearerKey,
  headerCount,
  HOP_BY_HOP,
  hostName,
  HostRule,
  isLoopback,
  READ_HEADERS,
  readHeader,
} from './headers.js';
export { checkedRequestId, childTraceparent, freshId } from './ids.js';
export {
  type AnswerHead,
  answerJson,
  ChunkWriter,
  errorFrame,
  type ModelRow,
  modelsJson,
  oneModelJson,
  type Route,
  SSE_DONE,
  type Usage,
} from './openai.js';
export {
  type AnswerRest,
  type LogprobRow,
  logprobsJson,
  reasoningDelta,
  refusalDelta,
  type ToolCallRow,
  toolCallDelta,
} from './openai-pieces.js';
export { SSE_EVENT_CHARACTERS_MAX, SseOverflow, SseReader } from './sse.js';
export { type ListenAt, Listener, type ListenerOptions, type ListenTls } from './listener.js';
export { numberAsWritten } from './number-as-written.js';
export { StopMatcher } from './stops.js';
