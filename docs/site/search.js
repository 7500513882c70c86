// Search over titles and headings. The index is a script of its own, so that it also works from a folder, without a server.
const form = document.querySelector('.search')
const input = form.querySelector('input')
const list = form.querySelector('ol')
const base = document.documentElement.dataset.base
const entries = globalThis.SEARCH_INDEX.map(([url, page, heading]) => ({
  url,
  page,
  heading,
  text: `${heading} ${page}`.toLowerCase(),
}))

form.hidden = false

input.addEventListener('input', () => {
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean)
  list.replaceChildren()
  if (words.length === 0) return
  const rank = ({ heading }) => (heading.toLowerCase().startsWith(words[0]) ? 0 : 1)
  const found = entries
    .filter(({ text }) => words.every((word) => text.includes(word)))
    .sort((a, b) => rank(a) - rank(b))
  for (const { url, page, heading } of found.slice(0, 30)) {
    const link = document.createElement('a')
    link.href = base + url
    link.textContent = heading
    const where = document.createElement('small')
    where.textContent = page
    link.append(where)
    const item = document.createElement('li')
    item.append(link)
    list.append(item)
  }
  if (found.length === 0) {
    const item = document.createElement('li')
    item.textContent = 'No title or heading has these words.'
    list.append(item)
  }
})

form.addEventListener('submit', (event) => {
  event.preventDefault()
  list.querySelector('a')?.click()
})

form.addEventListener('keydown', (event) => {
  const links = [...list.querySelectorAll('a')]
  const at = links.indexOf(document.activeElement)
  if (event.key === 'Escape') {
    list.replaceChildren()
    input.focus()
  } else if (event.key === 'ArrowDown' && links.length > 0) {
    event.preventDefault()
    links[Math.min(at + 1, links.length - 1)].focus()
  } else if (event.key === 'ArrowUp' && at >= 0) {
    event.preventDefault()
    if (at === 0) input.focus()
    else links[at - 1].focus()
  }
})

document.addEventListener('keydown', (event) => {
  if (event.key !== '/' || event.target.closest('input, textarea')) return
  event.preventDefault()
  input.focus()
})
