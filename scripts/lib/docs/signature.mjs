/** @typedef {import('./exports.mjs').Declaration} Declaration */
/** @typedef {readonly import('oxc-parser').Comment[]} Comments */

/** A constant whose value has more lines than this is shown without it. */
const LONGEST_VALUE = 12

/**
 * A declaration as a reader needs it: everything but bodies, private members and what begins with `export`.
 * @param {string} text of its file
 * @param {Comments} comments of its file
 * @param {Declaration} node
 * @param {string} name which of a `const a = 1, b = 2`; and what the door calls it
 * @returns {string}
 */
export function signatureOf(text, comments, node, name) {
  switch (node.type) {
    case 'FunctionDeclaration':
      return text.slice(node.start, node.body?.start ?? node.end).trim()
    case 'ClassDeclaration':
      return classSignature(text, comments, node)
    case 'VariableDeclaration':
      return (
        node.declarations
          .map(({ id, init }) => {
            const left = text.slice(id.start, id.end)
            if (id.type !== 'Identifier' || id.typeAnnotation || init === null) return `const ${left}`
            const value = text.slice(init.start, init.end)
            return value.split('\n').length > LONGEST_VALUE ? `const ${left}` : `const ${left} = ${value}`
          })
          .find((line) => line.startsWith(`const ${name}`)) ?? text.slice(node.start, node.end)
      )
    default:
      return text.slice(node.start, node.end)
  }
}

/**
 * @param {string} text
 * @param {Comments} comments
 * @param {import('oxc-parser').Class} node
 */
function classSignature(text, comments, node) {
  const lines = [`${text.slice(node.start, node.body.start).trim()} {`]
  for (const member of node.body.body) {
    const shown = memberSignature(text, member)
    if (shown === undefined) continue
    const doc = commentBefore(text, comments, member.start)
    if (doc !== undefined) lines.push(`  ${text.slice(doc.start, doc.end)}`)
    lines.push(`  ${shown}`)
  }
  return [...lines, '}'].join('\n')
}

/**
 * @param {string} text
 * @param {import('oxc-parser').ClassElement} member
 * @returns {string | undefined}
 */
function memberSignature(text, member) {
  if (member.type === 'StaticBlock' || ('accessibility' in member && member.accessibility === 'private'))
    return undefined
  if ('key' in member && member.key.type === 'PrivateIdentifier') return undefined
  if (member.type === 'MethodDefinition') {
    return text.slice(member.start, member.value.body?.start ?? member.end).trim()
  }
  if (member.type === 'PropertyDefinition' && member.value !== null) {
    return text
      .slice(member.start, member.value.start)
      .replace(/\s*=\s*$/, '')
      .trim()
  }
  return text.slice(member.start, member.end)
}

/**
 * The text of the doc comment right before a place.
 * @param {string} text
 * @param {Comments} comments
 * @param {number} offset
 * @returns {string | undefined}
 */
export function docBefore(text, comments, offset) {
  const comment = commentBefore(text, comments, offset)
  if (comment === undefined) return undefined
  const lines = comment.value.slice(1).split('\n')
  return lines
    .map((line, index) => (index === 0 ? line.trim() : line.replace(/^\s*\* ?/, '')))
    .join('\n')
    .trim()
}

/**
 * @param {string} text
 * @param {Comments} comments
 * @param {number} offset
 */
function commentBefore(text, comments, offset) {
  // A remark for the linter may stand in between.
  const isRightBefore = (/** @type {number} */ end) =>
    text
      .slice(end, offset)
      .replace(/\/\/.*$/gm, '')
      .trim() === ''
  return comments.find(
    ({ type, value, end }) => type === 'Block' && value.startsWith('*') && end <= offset && isRightBefore(end),
  )
}
