# The command line of Holdfast: hubs, nodes, and what operators run. It holds no Redis server.
#   docker build -t holdfast .
#   docker run --rm holdfast --help

FROM node:22-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci
COPY tsconfig.json tsconfig.build.json vite.dashboard.config.ts ./
COPY scripts/build.mjs scripts/
COPY src src
RUN npm run build

FROM node:22-bookworm-slim AS packages
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev

FROM node:22-bookworm-slim
ENV NODE_ENV=production
WORKDIR /app
COPY --from=packages /app/node_modules node_modules
COPY --from=build /app/dist dist
COPY package.json LICENSE ./
COPY lua lua
RUN mkdir /data && chown node:node /data
USER node
# Mirrors are kept here (.holdfast/mirrors): a volume, or a node forgets what it began.
WORKDIR /data
VOLUME /data
# Node is the first process: it handles SIGTERM itself (a node drains, then leaves). What a command leaves
# running behind is reaped only where the container has an init: docker run --init, `init: true` in compose.
ENTRYPOINT ["node", "/app/dist/cli/main.js"]
CMD ["--help"]
