// Nobody can be asked: what a crash leaves open stays unknown.
export { execute } from './charge.mjs'
