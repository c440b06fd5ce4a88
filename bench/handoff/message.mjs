// @ts-check
const conversations = 1000

/**
 * One message to one host. Work of a conversation is done in turn, so the conversations bound what can run at
 * the same time.
 * @param {string} id @param {string} host @param {Buffer} payload @returns {import('holdfast').MessageInput}
 */
export function messageFor(id, host, payload) {
  const conversation = `c-${Number(id.slice(2)) % conversations}`
  return { key: id, conversation, sender: 'bench', to: [{ host }], payload }
}
