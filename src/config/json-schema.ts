import {
  COUNT_PATTERN,
  expectedWords,
  type Field,
  type RecordShape,
  secretPattern,
  type Shape,
  timeText,
  TIME_PATTERN,
} from './shape.js';

export type Json = string | number | boolean | null | readonly Json[] | { readonly [name: string]: Json };

/** The description as JSON Schema, draft 2020-12: what an editor can see. What needs the environment is left to the start. */
export function jsonSchema(shape: RecordShape, title: string, description: string): Json {
  const root = schemaOf(shape) as { readonly [name: string]: Json };
  return { $schema: 'https://json-schema.org/draft/2020-12/schema', title, description, ...root };
}

const whole = (pattern: string): string => `^(?:${pattern})$`;

function schemaOf(shape: Shape): Json {
  switch (shape.kind) {
    case 'record':
      return recordSchema(shape, {});
    case 'tagged': {
      const kinds = Object.entries(shape.variants);
      const variants = kinds.map(([name, variant]) => recordSchema(variant, { [shape.tag]: { const: name } }));
      return variants.length === 1 ? variants[0]! : { oneOf: variants };
    }
    case 'list':
      return {
        type: 'array',
        items: schemaOf(shape.item),
        minItems: shape.min,
        maxItems: shape.max,
        ...(shape.unique === true ? { uniqueItems: true } : {}),
      };
    case 'text':
      return { type: 'string', pattern: whole(shape.pattern) };
    case 'choice':
      return { enum: shape.of };
    case 'switch':
      return { type: 'boolean' };
    case 'count': {
      if (shape.powerOfTwo === true) {
        const powers = Array.from({ length: 31 }, (_, bit) => 2 ** bit);
        return { enum: powers.filter((power) => power >= shape.min && power <= shape.max) };
      }
      const number = { type: 'integer', minimum: shape.min, maximum: shape.max };
      return shape.suffixes ? { anyOf: [number, { type: 'string', pattern: whole(COUNT_PATTERN) }] } : number;
    }
    case 'time':
      return { type: 'string', pattern: whole(TIME_PATTERN) };
    case 'secret':
      return { type: 'string', pattern: whole(secretPattern(shape)) };
  }
}

function recordSchema(shape: RecordShape, first: Readonly<Record<string, Json>>): Json {
  const required = shape.fields.filter(({ required: needed }) => needed === true).map(({ name }) => name);
  const properties = Object.fromEntries(
    shape.fields.map((field) => [field.name, { ...fieldSchema(field), ...(first[field.name] as object) }]),
  );
  return {
    type: 'object',
    additionalProperties: false,
    ...(required.length === 0 ? {} : { required }),
    properties,
  };
}

/** A record or list may be left empty, unless it is needed: everything in it is commented out. */
function fieldSchema(field: Field): { readonly [name: string]: Json } {
  const { shape } = field;
  const own = schemaOf(shape) as { readonly [name: string]: Json };
  const hollow = field.required !== true && (shape.kind === 'record' || shape.kind === 'list');
  return {
    description: `${field.words} (${expectedWords(shape)}).`,
    ...own,
    ...(hollow ? { type: [own.type!, 'null'] } : {}),
    ...(field.default === undefined
      ? {}
      : { default: shape.kind === 'time' ? timeText(field.default as number) : (field.default as Json) }),
  };
}
